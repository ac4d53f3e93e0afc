#!/usr/bin/env bash
#
# Makes sure that a container engine answers, and stops the one that it started.
#
#   scripts/engine.sh [start]   installs and starts an engine unless one answers already
#   scripts/engine.sh stop      ends the engine that this script started, and no other
#   scripts/engine.sh status    says what answers; fails when nothing does
#
# AGENTWORKSPACE_ENGINE_DIR holds the log and the record of the started engine.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/say.sh
. "$here/say.sh"
# shellcheck source=scripts/start-time.sh
. "$here/start-time.sh"

run_dir=${AGENTWORKSPACE_ENGINE_DIR:-/run/agentworkspace}
record=$run_dir/dockerd.pid
log=$run_dir/dockerd.log
start_deadline=60
stop_deadline=30
other_deadline=15

# The engine's version if one answers where the command line looks for it.
engine_version() {
    command -v docker >/dev/null || return 1
    timeout 10 docker version --format '{{.Server.Version}}' 2>/dev/null
}

# The id of the engine that this script started, if it still runs.
started_pid() {
    local pid started
    [[ -r $record ]] || return 1
    read -r pid started <"$record" || return 1
    [[ $pid =~ ^[0-9]+$ && $(start_time "$pid") == "$started" ]] || return 1
    [[ $(tr '\0' ' ' <"/proc/$pid/cmdline") == *dockerd* ]] || return 1
    printf '%s\n' "$pid"
}

install_missing() {
    local missing=()
    command -v dockerd >/dev/null || missing+=(docker.io)
    # dockerd sets up its bridge with it, and Debian's package only recommends it.
    command -v iptables >/dev/null || missing+=(iptables)
    ((${#missing[@]} == 0)) || "$here/install.sh" "${missing[@]}" 9>&-
    # From trixie on the command line is a package of its own.
    command -v docker >/dev/null || "$here/install.sh" docker-cli 9>&-
}

launch() {
    local pid version deadline=$((SECONDS + start_deadline))
    say "starting dockerd, its log is $log"
    # A session of its own, so that an interrupt at the terminal does not reach it; no descriptor of
    # ours, so that whoever waits for our output to end does not wait for it.
    setsid dockerd >"$log" 2>&1 </dev/null 9>&- &
    pid=$!
    printf '%s %s\n' "$pid" "$(start_time "$pid")" >"$record"
    until version=$(engine_version); do
        if ! kill -0 "$pid" 2>/dev/null; then
            rm -f "$record"
            tail -n 20 "$log" >&2
            fail "dockerd ended before it answered; its log is $log"
        fi
        if ((SECONDS >= deadline)); then
            kill "$pid" && rm -f "$record"
            tail -n 20 "$log" >&2
            fail "dockerd did not answer within $start_deadline s; its log is $log"
        fi
        sleep 0.1
    done
    say "engine $version answers after $((SECONDS - deadline + start_deadline)) s (process $pid)"
}

# An engine that somebody else has just started, such as the service manager when the package was
# installed, may not answer yet. A second one could not share its directories.
wait_for_other() {
    local pid deadline=$((SECONDS + other_deadline))
    read -r pid 2>/dev/null </var/run/docker.pid || return 1
    [[ -r /proc/$pid/cmdline && $(tr '\0' ' ' <"/proc/$pid/cmdline") == *dockerd* ]] || return 1
    say "dockerd runs (process $pid); waiting for it to answer"
    until engine_version >/dev/null; do
        ((SECONDS < deadline)) ||
            fail "dockerd runs (process $pid) but does not answer; see its log, and end it if it hangs"
        sleep 0.1
    done
}

start() {
    local version
    if version=$(engine_version); then
        say "engine $version answers"
        return
    fi
    if [[ -n ${DOCKER_HOST:-} ]]; then
        command -v docker >/dev/null || fail "DOCKER_HOST is set, but there is no docker command to use it with"
        fail "DOCKER_HOST is $DOCKER_HOST, and no engine answers there; unset it to have one started here"
    fi
    ((EUID == 0)) ||
        fail "no container engine answers, and only root can start one: run this as root," \
            "or join the group of the engine's socket"
    mkdir -p "$run_dir"
    # Two runs at once start one engine: the second waits here and then finds it.
    exec 9>"$run_dir/lock"
    flock 9
    if version=$(engine_version); then
        say "engine $version answers"
        return
    fi
    install_missing
    if wait_for_other; then
        say "engine $(engine_version) answers"
        return
    fi
    launch
}

stop() {
    local pid deadline=$((SECONDS + stop_deadline))
    if ! pid=$(started_pid); then
        rm -f "$record" 2>/dev/null || true
        say "this script started no engine that still runs; nothing to stop"
        return
    fi
    say "stopping dockerd (process $pid)"
    kill -TERM "$pid"
    while started_pid >/dev/null; do
        ((SECONDS < deadline)) ||
            fail "dockerd (process $pid) did not end within $stop_deadline s; its log is $log"
        sleep 0.1
    done
    rm -f "$record"
    say "stopped"
}

status() {
    local version pid by="something else"
    version=$(engine_version) || fail "no container engine answers"
    ! pid=$(started_pid) || by="this script (process $pid)"
    say "engine $version answers, started by $by"
}

case ${1:-start} in
start | stop | status) "${1:-start}" ;;
*) fail "unknown command \`$1\`: start, stop or status" ;;
esac
