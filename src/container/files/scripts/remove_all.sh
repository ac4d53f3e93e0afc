# remove_all.sh ROOT PATH: removes PATH with everything below it, following no link.
need readlink rm rmdir
walk "$1" keep keep
if [ ! -e "./$name" ] && [ ! -h "./$name" ]; then
    [ -x . ] || exit 110
    exit 102
fi
if [ -h "./$name" ] || [ ! -d "./$name" ]; then
    rm -f "./$name" || exit 113
    exit 0
fi
# GNU's `rm` goes down by handles. Others go down by names, where a directory that is swapped for a
# link leads outside, so the shell itself goes down instead.
case $(rm --version 2>/dev/null) in
*GNU*)
    rm -rf "./$name" || exit 113
    exit 0
    ;;
esac

# Enters the directory ./$1 and ends unless it is there.
descend() {
    cd -P "./$1" 2>/dev/null || {
        [ -d "./$1" ] || exit 105
        exit 110
    }
    case $here in
    /) here=/$1 ;;
    *) here=$here/$1 ;;
    esac
    inside
}

# Removes all but directories here, some at a time; $directory is then one that is left, or empty.
clear_files() {
    directory=
    set +f
    set --
    for entry in ./* ./.*; do
        if [ ! -h "$entry" ] && [ -d "$entry" ]; then
            case $entry in
            ./. | ./..) ;;
            *) directory=${entry#./} ;;
            esac
        elif [ -e "$entry" ] || [ -h "$entry" ]; then
            set -- "$@" "$entry"
            [ $# -lt 200 ] && continue
            rm -f "$@" || exit 113
            set --
        fi
    done
    set -f
    [ $# -eq 0 ] || rm -f "$@" || exit 113
}

top=$here
descend "$name"
while [ "$here" != "$top" ]; do
    [ -r . ] || exit 110
    clear_files
    if [ -n "$directory" ]; then
        # Most are empty soon, and then need not be entered.
        rmdir "./$directory" 2>/dev/null || descend "$directory"
        continue
    fi
    name=${here##*/}
    cd -P .. || exit 110
    here=${here%/*}
    [ -n "$here" ] || here=/
    inside
    rmdir "./$name" || exit 113
done
