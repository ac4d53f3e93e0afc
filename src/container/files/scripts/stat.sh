# stat.sh ROOT PATH follow|keep: what PATH is.
need readlink stat
walk "$1" "$2" keep
if [ -h "./$name" ]; then
    [ "$2" != follow ] || exit 105
elif [ ! -e "./$name" ]; then
    [ -x . ] || exit 110
    exit 102
fi
stat -c "$facts" "./$name" || exit 113
