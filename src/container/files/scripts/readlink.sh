# readlink.sh ROOT PATH: the target of the link PATH, with an `x` behind it.
need readlink
walk "$1" keep keep
if [ ! -h "./$name" ]; then
    [ ! -e "./$name" ] || exit 109
    [ -x . ] || exit 110
    exit 102
fi
readlink "./$name" || exit 113
