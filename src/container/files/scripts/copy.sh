# copy.sh ROOT FROM TO TEMPORARY: the regular file FROM to the name TO.
need readlink stat cat chmod mv rm mkdir
temporary=$3
length=
walk "$1" follow keep
regular
command exec 3<"./$name" || exit 113
opened 3 "$file"
from=$file
mode=$(stat -L -c %a /proc/self/fd/3) || exit 113
# The errors from here on are about TO.
printf 'to\n'
walk "$2" follow make
[ "$name" != . ] || exit 106
[ "$file" != "$from" ] || exit 115
old_facts
content() { cat <&3; }

if make_temporary; then
    fill_temporary
    written 4
    put_in_place
else
    [ -n "$owner" ] || exit 113
    open_in_place
    write_in_place <&3
    printf 'inplace %s\n' "$size"
fi
