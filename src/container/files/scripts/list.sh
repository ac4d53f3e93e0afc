# list.sh ROOT PATH: kind and name of everything in the directory PATH, each ended by a NUL.
need readlink
walk "$1/" follow keep
[ -r . ] || exit 110
set +f
for entry in ./* ./.*; do
    if [ -h "$entry" ]; then
        kind=l
    elif [ -f "$entry" ]; then
        kind=f
    elif [ -d "$entry" ]; then
        case $entry in
        ./. | ./..) continue ;;
        esac
        kind=d
    elif [ -p "$entry" ]; then
        kind=p
    elif [ -S "$entry" ]; then
        kind=s
    elif [ -b "$entry" ]; then
        kind=b
    elif [ -c "$entry" ]; then
        kind=c
    elif [ -e "$entry" ]; then
        kind=u
    else
        # A pattern that matches nothing stands for itself; or the entry is gone by now.
        continue
    fi
    printf '%s%s\0' "$kind" "${entry#./}" || exit 113
done
