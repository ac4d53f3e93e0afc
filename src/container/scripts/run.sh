# Enters a directory below the root without ever leaving the root, finds the program, and becomes it.
#
# Arguments: a nonce, the root (empty for `/`), the directory relative to it, names of variables to
# unset, the bytes 1 and 2, `wait` to read a line before the program begins, the program and its
# arguments. What it found goes to standard error in one line that starts
# with the nonce. Variables are prefixed because one that the environment already exports would
# reach the program.
aw_nonce=$1 aw_root=$2 aw_rest=$3 aw_unset=$4 aw_bytes=$5 aw_wait=$6
shift 6

aw_fail() {
    echo "$aw_nonce $1" >&2
    exit 126
}

# The step has been made already, so a directory swapped for a link cannot lie about where it led.
aw_inside() {
    case $PWD/ in
    "$aw_root"/*) ;;
    *) aw_fail outside ;;
    esac
}

aw_hops=0
cd -P . 2>/dev/null || aw_fail directory
aw_inside
while [ -n "$aw_rest" ]; do
    aw_name=${aw_rest%%/*}
    case $aw_rest in
    */*) aw_rest=${aw_rest#*/} ;;
    *) aw_rest="" ;;
    esac
    case $aw_name in
    '' | .) continue ;;
    ..) [ "$PWD" != "${aw_root:-/}" ] || aw_fail outside ;;
    *)
        if [ -L "./$aw_name" ]; then
            aw_hops=$((aw_hops + 1))
            [ "$aw_hops" -le 40 ] || aw_fail directory
            # The substitution strips every newline at the end, so the target is fenced.
            aw_link=$(PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin readlink "./$aw_name" 2>/dev/null && echo x) ||
                aw_fail unreadable-link
            aw_link=${aw_link%x}
            aw_link=${aw_link%?}
            case $aw_link in
            /*) aw_fail outside ;;
            esac
            aw_rest=$aw_link${aw_rest:+/$aw_rest}
            continue
        fi
        ;;
    esac
    cd -P "./$aw_name" 2>/dev/null || aw_fail directory
    aw_inside
done

aw_file="" aw_denied=""
case $1 in
*/*)
    if [ -f "$1" ] && [ -x "$1" ]; then
        aw_file=$1
    elif [ -e "$1" ]; then
        aw_denied=not-executable
    fi
    ;;
*)
    aw_list=${PATH-}:
    while [ -n "$aw_list" ]; do
        aw_dir=${aw_list%%:*}
        aw_list=${aw_list#*:}
        if [ -f "${aw_dir:-.}/$1" ] && [ -x "${aw_dir:-.}/$1" ]; then
            aw_file=${aw_dir:-.}/$1
            break
        elif [ -e "${aw_dir:-.}/$1" ]; then
            aw_denied=not-executable
        fi
    done
    ;;
esac
[ -n "$aw_file" ] || aw_fail "${aw_denied:-not-found}"

# A shell runs a file that the kernel refuses as a script of its own, which nobody asked for.
if [ -r "$aw_file" ]; then
    aw_first=
    IFS= read -r aw_first <"$aw_file"
    case $aw_first in
    # What follows is the word size and the byte order. The kernel refuses other values.
    ?ELF[$aw_bytes][$aw_bytes]*) ;;
    '#!'*)
        aw_first=${aw_first#'#!'}
        aw_first=${aw_first#"${aw_first%%[! 	]*}"}
        aw_first=${aw_first%%[ 	]*}
        [ -e "$aw_first" ] || aw_fail not-found
        [ -x "$aw_first" ] || aw_fail not-executable
        ;;
    *) aw_fail not-executable ;;
    esac
fi

# The process keeps its number when it becomes the program; its start time tells it from a later
# one with the same number.
aw_started=
aw_read_start() {
    read -r aw_stat <"/proc/$$/stat" || return
    set -f
    # shellcheck disable=SC2086 # The fields are wanted apart.
    set -- ${aw_stat##*) }
    [ "$#" -lt 20 ] || aw_started=${20}
}
{ aw_read_start; } 2>/dev/null

# A terminal gets its size, and then a line, only after the engine has started this.
[ -z "$aw_wait" ] || read -r aw_wait

# shellcheck disable=SC2086 # The names are wanted apart.
unset $aw_unset
unset PWD OLDPWD SHLVL
echo "$aw_nonce ok $$ $aw_started" >&2
# Reached only when the kernel refuses the program after all.
trap 'echo "$aw_nonce refused" >&2' EXIT
case $1 in
# shellcheck disable=SC3038 # Shells that know no `--` here know no options either.
-*) exec -- "$@" ;;
*) exec "$@" ;;
esac
