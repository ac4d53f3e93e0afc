# chmod.sh ROOT PATH MODE: sets the permission bits of a file or directory.
need readlink chmod
walk "$1" follow keep
[ ! -h "./$name" ] || exit 105
if [ ! -e "./$name" ]; then
    [ -x . ] || exit 110
    exit 102
fi
# Through a descriptor, so that no link can be put in between. To open a FIFO or a device could
# block or have effects, and what may not be read cannot be opened.
if { [ -f "./$name" ] || [ -d "./$name" ]; } && command exec 3<"./$name"; then
    opened 3 "$file"
    chmod "$2" /proc/self/fd/3 || exit 113
else
    chmod "$2" "./$name" || exit 113
fi
