#!/usr/bin/env bash
#
# Runs the test suite of a project from PyPI in a container of its own, with its output as it
# comes, and takes the report out: what an evaluation harness does for each task.
#
# AGENTWORKSPACE_BIN    the command to use; otherwise it is built here

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/say.sh
. "$here/say.sh"
cd "$here/.."

project=more-itertools
version=10.5.0
digest=5482bfef7849c25dc3c6dd53a6173ae4795da2a41a80faea6700d9f5846c5da6
image=agentworkspace/python:test

target=${CARGO_TARGET_DIR:-target}
work=$target/demo
source_dir=$work/$project-$version
report=$work/junit.xml
record=$work/run.json

build_command() {
    if [[ -n ${AGENTWORKSPACE_BIN:-} ]]; then
        bin=$AGENTWORKSPACE_BIN
        return
    fi
    say "building the command"
    cargo build --quiet --locked --bin agentworkspace
    bin=$target/debug/agentworkspace
}

# The source distribution as its authors published it, checked against the digest above.
fetch_project() {
    local archive=$work/$project-$version.tar.gz
    if ! sha256sum --status --check <<<"$digest  $archive" 2>/dev/null; then
        python3 -m pip --version >/dev/null 2>&1 || fail "pip is missing (apt-get install python3-pip)"
        say "fetching $project $version from PyPI"
        printf '%s==%s --hash=sha256:%s\n' "$project" "$version" "$digest" >"$work/requirements.txt"
        python3 -m pip --quiet download --no-deps --no-binary "$project" --require-hashes \
            --requirement "$work/requirements.txt" --dest "$work" >&2
        sha256sum --quiet --check <<<"$digest  $archive" >&2
    fi
    rm -rf "$source_dir"
    tar -C "$work" --no-same-owner -xzf "$archive"
}

summarize() {
    python3 - "$report" <<'PYTHON'
import sys
import xml.etree.ElementTree

suites = xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testsuite")
counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
for suite in suites:
    for name in counts:
        counts[name] += int(suite.get(name, "0"))
print("junit.xml: " + ", ".join(f"{number} {name}" for name, number in counts.items()))
if counts["tests"] == 0 or counts["failures"] or counts["errors"]:
    sys.exit("error: the report is not that of a suite which passed")
PYTHON
}

mkdir -p "$work"
"$here/images.sh" debian python &
images=$!
build_command
fetch_project
wait "$images" || fail "the image could not be built"
scripts/leaks.sh list >"$work/leaks-before.txt"
rm -f "$report" "$record"

say "running the $project tests in a container of $image"
began=$SECONDS
"$bin" run --image "$image" --copy "$source_dir:." --collect "junit.xml:$report" \
    --memory 512m --timeout 5m -- python3 -m pytest --junitxml=junit.xml -p no:cacheprovider
say "done in $((SECONDS - began)) s"
summarize

say "what a harness records beside the result: "
"$bin" run --image "$image" --json -- python3 --version >"$record"
python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["descriptor"], indent=2))' <"$record"
scripts/leaks.sh check "$work/leaks-before.txt"
