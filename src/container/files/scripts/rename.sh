# rename.sh ROOT FROM TO: renames FROM to TO in one step.
need readlink mv rm rmdir
mount_of() {
    while read -r key value; do
        [ "$key" != mnt_id: ] || printf '%s' "$value"
    done <"/proc/self/fdinfo/$1"
}

# The errors from here on are about TO.
printf 'to\n'
walk "$2" keep keep
to=$name
to_file=$file
command exec 4<. || exit 113
opened 4 "$here"
printf 'from\n'
walk "$1" keep keep
from=$name
command exec 3<. || exit 113
opened 3 "$here"
if [ ! -e "./$from" ] && [ ! -h "./$from" ]; then
    [ -x . ] || exit 110
    exit 102
fi
if [ "$file" = "$to_file" ]; then
    exit 0
fi
# `mv` would copy from one mount to another, which is not one step.
[ "$(mount_of 3)" = "$(mount_of 4)" ] || exit 116
target=/proc/self/fd/4/$to
printf 'to\n'
if [ ! -h "./$from" ] && [ -d "./$from" ]; then
    case $to_file in
    "$file"/*) exit 117 ;;
    esac
    if [ -h "$target" ] || { [ -e "$target" ] && [ ! -d "$target" ]; }; then
        exit 118
    fi
elif [ ! -h "$target" ] && [ -d "$target" ]; then
    exit 119
fi
moved=$(mv -f -T "/proc/self/fd/3/$from" "$target" 2>&1) && exit 0
# Some `mv` replace no directory, and no link to one.
case $moved in
*'is a directory' | *'Is a directory')
    if [ -h "$target" ]; then
        rm -f "$target" || exit 113
    else
        rmdir "$target" || exit 113
    fi
    mv -f -T "/proc/self/fd/3/$from" "$target" || exit 113
    ;;
*)
    printf '%s\n' "$moved" >&2
    exit 113
    ;;
esac
