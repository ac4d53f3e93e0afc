# Messages of the scripts, to be sourced: everything goes to standard error, so that standard
# output stays free for results.
# shellcheck shell=bash

say() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

fail() {
    say "error: $*"
    exit 1
}
