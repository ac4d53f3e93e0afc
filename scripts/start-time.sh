# Tells processes of the same id apart, to be sourced.
# shellcheck shell=bash

# When the process of id $1 started, in clock ticks since boot. With the id this names one process
# for ever, because an id is used again. The name in field 2 may hold spaces, hence the cut.
start_time() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    stat=${stat##*) }
    # shellcheck disable=SC2086 # The fields are split on purpose.
    set -- $stat
    printf '%s\n' "${20}"
}
