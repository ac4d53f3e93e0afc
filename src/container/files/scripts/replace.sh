# Puts new content at a name in one step, or over the old content where that is impossible. The
# script before it defines `content`, which writes the content to its standard output, and the one
# behind it calls `replace`.

# Opens a new file $temporary for writing as descriptor 4 and for reading as 5, or fails. `set -C`
# makes it O_EXCL, which follows no link.
make_temporary() {
    umask 077
    set -C
    # Nothing else has the name, so that it can be removed even if it could not be made.
    trap 'rm -f "./$temporary"' EXIT
    trap 'exit 143' HUP INT TERM
    command exec 4>"./$temporary" || {
        set +C
        umask 022
        trap - EXIT HUP INT TERM
        return 1
    }
    set +C
    umask 022
    opened 4 "${file%/*}/$temporary"
    command exec 5<"/proc/self/fd/4"
}

# Reads type, mode and owner of ./$name, if there is one, into $mode and $owner.
old_facts() {
    owner=
    if [ ! -e "./$name" ] && [ ! -h "./$name" ]; then
        [ -x . ] || exit 110
        return
    fi
    regular
    old=$(stat -c '%f %a %u:%g' "./$name") || exit 105
    case $old in
    8???' '*) old=${old#* } ;;
    *) exit 105 ;;
    esac
    mode=${old%% *}
    owner=${old#* }
}

# Gives the temporary file the owner $owner, if that is another one. The shell has no way to ask,
# so whether it is allowed shows by trying.
give_away() {
    [ -n "$owner" ] || return 0
    [ "$(stat -L -c '%u:%g' /proc/self/fd/4)" != "$owner" ] || return 0
    command -v chown >/dev/null 2>&1 && chown "$owner" /proc/self/fd/4
}

# Opens the file ./$name that is there as descriptor 6, to be written in place. It is opened for
# reading first, so that nothing is made or cut where a link leads that was swapped in.
open_in_place() {
    regular
    command exec 6<"./$name" || exit 113
    opened 6 "$file"
    # Opened for writing without cutting it, to hear whether that is allowed.
    command exec 7>>/proc/self/fd/6 || exit 113
}

# Writes standard input over the file of `open_in_place`.
write_in_place() {
    command exec 7>/proc/self/fd/6 || exit 113
    cat >&7 || exit 113
    written 7
}

# Ends unless descriptor $1 holds $length bytes, where $length is known.
written() {
    size=$(stat -L -c %s "/proc/self/fd/$1") || exit 113
    [ -z "$length" ] || [ "$size" = "$length" ] || exit 114
}

# Copies `content` to descriptor 4, and has it on the disk.
fill_temporary() {
    if [ "$length" = 0 ]; then
        return
    elif command -v dd >/dev/null 2>&1; then
        content | dd bs=65536 conv=fsync >&4 || exit 113
    else
        content >&4 || exit 113
    fi
}

# Makes the temporary file the content of $name.
put_in_place() {
    if give_away; then
        chmod "$mode" /proc/self/fd/4 || exit 113
        # Without -T a directory that appeared there would be moved into. Where `mv` does not know
        # it, or the name is a mount of its own, the old file is written over.
        if moved=$(mv -f -T "./$temporary" "./$name" 2>&1); then
            trap - EXIT
            printf 'atomic %s\n' "$size"
            return
        fi
        case $moved in
        *option* | *busy | *Busy) ;;
        *)
            printf '%s\n' "$moved" >&2
            exit 113
            ;;
        esac
    fi
    open_in_place
    write_in_place <&5
    printf 'inplace %s\n' "$size"
}
