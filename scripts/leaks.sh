#!/usr/bin/env bash
#
# Fails when something of ours is left: a container, network or volume with our label whose owner no
# longer runs, or a process of a program built here.
#
#   scripts/leaks.sh list           prints what there is now
#   scripts/leaks.sh check [FILE]   fails for what is there and not in FILE, an earlier list

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/say.sh
. "$here/say.sh"
# shellcheck source=scripts/start-time.sh
. "$here/start-time.sh"

target=${CARGO_TARGET_DIR:-$(cd "$here/.." && pwd)/target}
# What a process or an owner's death leaves may take this long to go.
deadline_seconds=30

engine_answers() {
    command -v docker >/dev/null && timeout 10 docker version >/dev/null 2>&1
}

# Whether the process of id $1 that started at $2 in boot $3 still runs here.
owner_runs() {
    [[ -n $1 && $3 == "$(</proc/sys/kernel/random/boot_id)" && $(start_time "$1") == "$2" ]]
}

# Every object of the engine with our label, by kind, id and name, but for those that a process
# somewhere else on this machine is using.
engine_objects() {
    local owner='{{.Label "agentworkspace.owner.pid"}}|{{.Label "agentworkspace.owner.started"}}'
    owner+='|{{.Label "agentworkspace.owner.boot"}}'
    local ours=(--filter label=agentworkspace) helpers=(--filter label=agentworkspace.helper)
    local kind id name pid started boot
    engine_answers || return 0
    {
        docker ps --all --no-trunc "${ours[@]}" --format "container|{{.ID}}|{{.Names}}|$owner"
        docker network ls --no-trunc "${ours[@]}" --format "network|{{.ID}}|{{.Name}}|$owner"
        docker volume ls "${ours[@]}" --format "volume|{{.Name}}|{{.Name}}|$owner"
        docker volume ls "${helpers[@]}" --format "volume|{{.Name}}|{{.Name}}|$owner"
    } | while IFS='|' read -r kind id name pid started boot; do
        owner_runs "$pid" "$started" "$boot" || printf '%s %s %s\n' "$kind" "$id" "$name"
    done
}

# Every process whose program was built here, also when it has been built anew since.
processes() {
    local dir exe
    for dir in /proc/[0-9]*; do
        exe=$(readlink "$dir/exe" 2>/dev/null) || continue
        [[ $exe == "$target"/*/* ]] || continue
        printf 'process %s %s\n' "${dir#/proc/}" "$(tr '\0' ' ' <"$dir/cmdline" 2>/dev/null | cut -c 1-120)"
    done
}

list() {
    {
        engine_objects
        processes
    } | sort -u
}

# What is there now and was not before.
new_ones() {
    comm -13 <(sort -u "$1") <(list)
}

check() {
    local before=$1 left deadline=$((SECONDS + deadline_seconds))
    while left=$(new_ones "$before") && [[ -n $left ]]; do
        if ((SECONDS >= deadline)); then
            printf '%s\n' "$left" >&2
            fail "$(wc -l <<<"$left") things are left over"
        fi
        sleep 0.2
    done
    engine_answers || say "no container engine answers, so only processes were looked for"
    say "nothing is left over"
}

case ${1:-check} in
list) list ;;
check) check "${2:-/dev/null}" ;;
*) fail "unknown command \`$1\`: list or check" ;;
esac
