# remove.sh ROOT PATH: removes a file, a link or an empty directory.
need readlink rm rmdir
walk "$1" keep keep
if [ -h "./$name" ]; then
    rm -f "./$name" || exit 113
elif [ -d "./$name" ]; then
    rmdir "./$name" || exit 113
elif [ -e "./$name" ]; then
    rm -f "./$name" || exit 113
else
    [ -x . ] || exit 110
    exit 102
fi
