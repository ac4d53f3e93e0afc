# write.sh ROOT PATH MODE make|keep TEMPORARY: standard input to the regular file PATH.
#
# It says `ready` when a temporary file is there, or `direct` when only the old file can be written
# over. Then it reads a line with the length, and that many bytes. What is shorter is dropped: to a
# script, a caller that went away looks like the end of the content.
need readlink stat cat head chmod mv rm mkdir
mode=$2
temporary=$4
walk "$1" follow "$3"
[ "$name" != . ] || exit 106
old_facts
content() { head -c "$length"; }

if make_temporary; then
    printf 'ready\n'
    read -r length || exit 114
    fill_temporary
    written 4
    put_in_place
else
    [ -n "$owner" ] || exit 113
    open_in_place
    printf 'direct\n'
    read -r length || exit 114
    content | write_in_place || exit $?
    printf 'inplace %s\n' "$length"
fi
