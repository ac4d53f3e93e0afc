# Signals every process of some commands, and tells which are left and in how many rounds it met any.
#
# Arguments: a signal number, needles with spaces between them, one of which the environment of those
# processes holds, and then known processes as `pid:start`. Also meant are all descendants of such a process and all members of
# its session and process group. Signal 9 is sent until none is left or many rounds have made no
# end of it, so that one which forks meanwhile is caught as well; any other is sent once.
#
# Only builtins are used: at the container's limit on processes nothing could be forked.
signal=$1 needles=$2
shift 2
known=" $* "
# These are kept from round to round: what forked as its parent died is still in its session.
groups=' ' sessions=' '

# Fills `table` with `pid ppid group session start` of what runs. A name in `stat` can hold
# anything, so fields are counted from its last parenthesis. A zombie has ended already.
scan() {
    table=
    for entry in /proc/[0-9]*; do
        pid=${entry#/proc/}
        case $pid in
        "$$" | 1) continue ;;
        esac
        stat=
        while IFS= read -r line || [ -n "$line" ]; do
            stat="$stat$line "
        done <"$entry/stat"
        set -f
        # shellcheck disable=SC2086 # The fields are wanted apart.
        set -- ${stat##*) }
        set +f
        [ "$#" -ge 20 ] || continue
        case $1 in
        Z | X | x) continue ;;
        esac
        table="$table$pid $2 $3 $4 ${20} "
    done
}

# Whether the environment of process $1 holds a needle; reading drops the zero bytes in it.
marked() {
    while IFS= read -r line || [ -n "$line" ]; do
        for needle in $needles; do
            case $line in
            *"$needle"*) return 0 ;;
            esac
        done
    done <"/proc/$1/environ"
    return 1
}

# Adds process $1 of group $3, session $4 and start $5 to what is meant.
add() {
    members="$members$1:$5 "
    pids="$pids$1 "
    case $groups in *" $3 "*) ;; *) groups="$groups$3 " ;; esac
    case $sessions in *" $4 "*) ;; *) sessions="$sessions$4 " ;; esac
    grown=1
}

# Collects what is meant in `members`: what is known or marked, then relatives of it until there are
# no more.
collect() {
    scan
    members='' pids=' '
    # shellcheck disable=SC2086 # The fields are wanted apart.
    set -- $table
    while [ "$#" -ge 5 ]; do
        case $known in
        *" $1:$5 "*) add "$@" ;;
        *) if marked "$1"; then add "$@"; fi ;;
        esac
        shift 5
    done
    grown=1
    while [ -n "$grown" ]; do
        grown=
        # shellcheck disable=SC2086 # The fields are wanted apart.
        set -- $table
        while [ "$#" -ge 5 ]; do
            case $pids in
            *" $1 "*) ;;
            *)
                case $pids$sessions$groups in
                *" $2 "*) related "$@" ;;
                *" $3 "*) related "$@" ;;
                *" $4 "*) related "$@" ;;
                esac
                ;;
            esac
            shift 5
        done
    done
}

# Adds process $1 if its parent $2 is meant, or its group $3 or session $4 is one of those.
related() {
    case $pids in *" $2 "*) add "$@" && return ;; esac
    case $groups in *" $3 "*) add "$@" && return ;; esac
    case $sessions in *" $4 "*) add "$@" ;; esac
}

# Sends the signal to what is meant. A group dies as one, which no fork in it escapes.
send() {
    # shellcheck disable=SC2086 # The fields are wanted apart.
    if [ "$signal" = 9 ]; then
        for group in $groups; do
            case $group in 0 | 1) ;; *) kill -9 "-$group" ;; esac
        done
    fi
    for member in $members; do
        kill "-$signal" "${member%%:*}"
    done
}

{
    round=0
    while collect; [ -n "$members" ]; do
        if [ "$signal" != 0 ]; then send; fi
        round=$((round + 1))
        if [ "$signal" != 9 ] || [ "$round" -ge 100 ]; then break; fi
    done
} 2>/dev/null
echo "left $members"
echo "done $round"
