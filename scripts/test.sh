#!/usr/bin/env bash
#
# Runs every test, checks that nothing of ours is left behind, and ends with one line that counts
# all of them. Arguments go to `cargo test`.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/say.sh
. "$here/say.sh"
cd "$here/.."

target=${CARGO_TARGET_DIR:-target}
results=$target/test-results.txt
before=$target/leaks-before.txt

# The sums over all test programs, from the line that each one ends with.
count() {
    awk '/^test result: / {
            for (i = 2; i < NF; i++) {
                if ($(i + 1) ~ /^passed/) passed += $i
                if ($(i + 1) ~ /^failed/) failed += $i
                if ($(i + 1) ~ /^ignored/) ignored += $i
            }
        }
        END { printf "%d passed, %d failed, %d ignored\n", passed, failed, ignored }' "$results"
}

mkdir -p "$target"
"$here/leaks.sh" list >"$before"
status=0
cargo test --all-features --locked --no-fail-fast "$@" | tee "$results" || status=1
# The helper's program stays in the engine for the next container; here there is none.
"$target/debug/agentworkspace" prune --helpers >/dev/null || status=1
"$here/leaks.sh" check "$before" || status=1
((status == 0)) || say "error: a test failed, or something is left behind; see above"
count
exit "$status"
