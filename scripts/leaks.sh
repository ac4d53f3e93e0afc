#!/usr/bin/env bash
#
# Fails when something of ours is left: a container, network or volume with one of our labels, or a
# process of a program built here.
#
#   scripts/leaks.sh list           prints what there is now
#   scripts/leaks.sh check [FILE]   fails for what is there and not in FILE, an earlier list

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/say.sh
. "$here/say.sh"

target=${CARGO_TARGET_DIR:-$(cd "$here/.." && pwd)/target}
# What a process or an owner's death leaves may take this long to go.
deadline_seconds=30

engine_answers() {
    command -v docker >/dev/null && timeout 10 docker version >/dev/null 2>&1
}

# Every object of the engine with a label of ours, by kind, id and name.
engine_objects() {
    engine_answers || return 0
    {
        docker ps --all --no-trunc --format 'container {{.ID}} {{.Names}} {{.Labels}}'
        docker network ls --no-trunc --format 'network {{.ID}} {{.Name}} {{.Labels}}'
        docker volume ls --format 'volume {{.Name}} {{.Name}} {{.Labels}}'
    } | grep -E '^[a-z]+ [^ ]+ [^ ]+ (.*,)?agentworkspace[.=]' | cut -d ' ' -f 1-3 || true
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
