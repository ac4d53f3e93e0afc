#!/usr/bin/env bash
#
# Installs packages of Debian or a relative of it.
#
#   scripts/install.sh PACKAGE...

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/say.sh
. "$here/say.sh"

(($# > 0)) || fail "which packages?"
command -v apt-get >/dev/null || fail "there is no apt-get here; install $* in this system's own way"
((EUID == 0)) || fail "installing $* needs root: run this as root once, later runs do without"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive

install() {
    # One that runs already, such as an automatic update, is waited for.
    apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@" >"$log" 2>&1 </dev/null
}

say "installing $*"
install "$@" && exit
# A fresh machine has no package lists, or old ones that name versions that are gone.
say "refreshing the package lists and trying again"
if ! apt-get update >"$log" 2>&1 || ! install "$@"; then
    tail -n 20 "$log" >&2
    fail "apt-get could not install $*"
fi
