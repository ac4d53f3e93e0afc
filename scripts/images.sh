#!/usr/bin/env bash
#
# Builds the images of the tests and the demo, where they are missing or their inputs have changed.
#
#   scripts/images.sh [NAME]...     busybox, static, debian, python; all of them by default
#
# AGENTWORKSPACE_DEBIAN_SUITE     the Debian release, `bookworm` by default
# AGENTWORKSPACE_DEBIAN_MIRROR    where debootstrap fetches it, its own default otherwise
# AGENTWORKSPACE_BUSYBOX          a static busybox, where Debian's busybox-static cannot be had

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/say.sh
. "$here/say.sh"

images_dir=$here/../images
suite=${AGENTWORKSPACE_DEBIAN_SUITE:-bookworm}
base_tag=agentworkspace/debian-base:$suite
# Containers inherit the labels of their image, so this key must not look like one of the labels by
# which workspaces are found.
label=images.inputs
scratch=

tag_of() {
    printf 'agentworkspace/%s:test\n' "$1"
}

# The digest of what image $1 is made from. The busybox binary is left out: to compare it one would
# have to fetch it on every run.
inputs_of() {
    {
        printf '%s\n' "$1" "$(uname -m)"
        cat "$images_dir/$1"/*
        case $1 in
        debian) printf '%s\n' "$suite" ;;
        python) inputs_of debian ;;
        esac
    } | sha256sum | cut -d ' ' -f 1
}

# The digest that tag $1 was made from: empty for an image that is not ours; fails without one.
label_of() {
    docker image inspect --format "{{index .Config.Labels \"$label\"}}" "$1" 2>/dev/null
}

is_current() {
    local found
    found=$(label_of "$(tag_of "$1")") && [[ $found == "$(inputs_of "$1")" ]]
}

refuse_foreign_tag() {
    local found
    found=$(label_of "$1") || return 0
    [[ -n $found ]] ||
        fail "the image $1 exists and was not made by this script; rename it, or remove it with" \
            "\`docker rmi $1\`"
}

# Runs a command with its output in a log, which is shown when it fails.
quietly() {
    if ! "$@" >"$scratch/log" 2>&1; then
        tail -n 30 "$scratch/log" >&2
        fail "this failed: $*"
    fi
}

require_root() {
    ((EUID == 0)) || fail "$1 needs root; run this as root once, later runs do without"
}

# Puts a static busybox at $1.
fetch_busybox() {
    if [[ -n ${AGENTWORKSPACE_BUSYBOX:-} ]]; then
        cp "$AGENTWORKSPACE_BUSYBOX" "$1" && chmod 0755 "$1"
        return
    fi
    # Debian's package `busybox` installs the same path, linked dynamically.
    if ! dpkg-query --show --showformat '${db:Status-Status}' busybox-static 2>/dev/null | grep -qx installed; then
        command -v apt-get >/dev/null ||
            fail "set AGENTWORKSPACE_BUSYBOX to a static busybox; there is no apt-get to fetch one with"
        fetch_busybox_package "$1"
        return
    fi
    cp /bin/busybox "$1"
}

# Unpacks the package rather than installing it, so that nothing of this machine changes.
fetch_busybox_package() {
    local unpacked=$scratch/busybox-static
    # Two images hold a busybox; the second one takes what the first one fetched.
    if [[ ! -d $unpacked ]]; then
        mkdir "$unpacked"
        if ! (cd "$unpacked" && apt-get download busybox-static) >"$scratch/log" 2>&1; then
            require_root "refreshing the package lists"
            quietly apt-get update
            quietly env -C "$unpacked" apt-get download busybox-static
        fi
        quietly dpkg-deb -x "$unpacked"/busybox-static_*.deb "$unpacked"
    fi
    find "$unpacked" -name busybox -type f -perm -u+x -exec cp {} "$1" \;
    [[ -x $1 ]] || fail "the package busybox-static holds no busybox"
}

# Prints the image that Debian images are built from, and makes it if need be.
debian_base() {
    local public=debian:$suite-slim root=$scratch/root
    refuse_foreign_tag "$base_tag"
    if label_of "$base_tag" >/dev/null; then
        printf '%s\n' "$base_tag"
        return
    fi
    # A registry that does not answer soon is not there; one that does may take its time.
    if timeout 5 docker manifest inspect "$public" >/dev/null 2>&1 &&
        timeout 300 docker pull "$public" >"$scratch/log" 2>&1; then
        printf '%s\n' "$public"
        return
    fi
    say "no registry answers; making Debian $suite with debootstrap, which takes about a minute"
    require_root debootstrap
    command -v debootstrap >/dev/null || "$here/install.sh" debootstrap 9>&-
    quietly debootstrap --variant=minbase "$suite" "$root" ${AGENTWORKSPACE_DEBIAN_MIRROR:+"$AGENTWORKSPACE_DEBIAN_MIRROR"}
    rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/log/*
    tar -C "$root" --numeric-owner -c . |
        docker import --change "LABEL $label=$suite" - "$base_tag" >/dev/null
    rm -rf "$root"
    printf '%s\n' "$base_tag"
}

build() {
    local name=$1 tag began=$SECONDS context=$scratch/context base options=()
    tag=$(tag_of "$name")
    refuse_foreign_tag "$tag"
    [[ $name != python ]] || is_current debian || build debian
    say "building $tag"
    rm -rf "$context" && cp -r "$images_dir/$name" "$context"
    case $name in
    busybox | static)
        fetch_busybox "$context/busybox"
        options=(--network none)
        ;;
    debian)
        base=$(debian_base)
        options=(--network none --build-arg "BASE=$base")
        ;;
    python)
        # The engine's own network may not reach the package registry.
        options=(--network host --build-arg "BASE=$(tag_of debian)")
        ;;
    esac
    # The builder that every engine has; the newer one is a plugin that may be missing.
    DOCKER_BUILDKIT=0 quietly docker build --force-rm "${options[@]}" \
        --label "$label=$(inputs_of "$name")" --tag "$tag" "$context"
    say "built $tag in $((SECONDS - began)) s"
}

clean_up() {
    [[ -z $scratch ]] || rm -rf --one-file-system "$scratch"
}

main() {
    local name stale=() names=("$@") lock_dir=/run/agentworkspace
    ((${#names[@]} > 0)) || names=(busybox static debian python)
    for name in "${names[@]}"; do
        [[ -f $images_dir/$name/Dockerfile ]] || fail "there is no image \`$name\` in images/"
        is_current "$name" || stale+=("$name")
    done
    if ((${#stale[@]} == 0)); then
        say "${#names[@]} images are up to date"
        return
    fi
    timeout 10 docker version >/dev/null 2>&1 || fail "no container engine answers; try scripts/engine.sh"

    # Two runs at once build each image once: the second waits here and then finds it.
    ((EUID == 0)) || lock_dir=${XDG_RUNTIME_DIR:-$HOME/.cache}/agentworkspace
    mkdir -p "$lock_dir"
    exec 9>"$lock_dir/images.lock"
    flock 9
    scratch=$(mktemp -d)
    trap clean_up EXIT
    for name in "${stale[@]}"; do
        is_current "$name" || build "$name"
    done
}

main "$@"
