#!/usr/bin/env bash
# A newer Docker engine than the machine's, from packages of a later Debian that are unpacked and not installed:
#   docker_newer.sh start|status|stop   as docker.sh does
#   docker_newer.sh run COMMAND...      what tests say of it: run pytest -q packages/sandbox-docker
# PROCTOR_DOCKER_SUITE=sid is for the engine of another suite than that of Debian 13, trixie; PROCTOR_DEBIAN_MIRROR
# says where Debian is to be had, if this machine's apt does not know. To run a command needs root.
# Its programs see the unpacked /usr instead of the machine's, and a network of their own, so that no other engine of
# the machine is touched; a command that is run is in that network too, where ports are reached and nothing else is.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/services/common.sh
. "$here/common.sh"
suite=${PROCTOR_DOCKER_SUITE:-trixie}
export PROCTOR_DOCKER_HOME=${PROCTOR_DOCKER_HOME:-${TMPDIR:-/tmp}/proctor-docker-$suite-$(id -u)}
unpacked=$PROCTOR_DOCKER_HOME-packages
export PROCTOR_DOCKERD=$unpacked/dockerd PROCTOR_DOCKER_SCRIPT=$0

unpack() { # the engine and all that it needs: apt is told that nothing is installed
    local package mirror options
    if [ -x "$PROCTOR_DOCKERD" ]; then return; fi
    if ! command -v apt-get >/dev/null || [ ! -r /usr/share/keyrings/debian-archive-keyring.gpg ]; then
        say "the packages of a later Debian need apt-get and the keys of the package debian-archive-keyring"
        exit 1
    fi
    mirror=${PROCTOR_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' | sort -u | head -n 1)}
    if [ -z "$mirror" ]; then
        say "this machine's apt knows no Debian: run apt-get update, or set PROCTOR_DEBIAN_MIRROR to its address"
        exit 1
    fi
    say "unpacking the Docker engine of Debian $suite"
    rm -rf "$unpacked"
    mkdir -p "$unpacked"/{state/lists,cache/archives}/partial "$unpacked/system"
    : >"$unpacked/installed"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "$mirror $suite main" >"$unpacked/sources"
    options=(-q -o "Dir::Etc::sourcelist=$unpacked/sources" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::Etc::preferencesparts=/dev/null -o "Dir::State=$unpacked/state"
        -o "Dir::State::status=$unpacked/installed" -o "Dir::Cache=$unpacked/cache"
        -o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none -o Debug::NoLocking=true)
    apt-get "${options[@]}" update >&2
    apt-get "${options[@]}" install -y --no-install-recommends --download-only docker.io iptables iproute2 >&2
    for package in "$unpacked"/cache/archives/*.deb; do dpkg-deb -x "$package" "$unpacked/system"; done
    # What the packages' scripts would do.
    ln -s iptables-nft "$unpacked/system/usr/sbin/iptables"
    ln -s ip6tables-nft "$unpacked/system/usr/sbin/ip6tables"
    rm -rf "$unpacked"/{cache,state}
    cat >"$PROCTOR_DOCKERD" <<'END'
#!/bin/sh
exec unshare --mount --net sh -c 'mount --bind "$0" /usr && ip link set lo up && exec dockerd "$@"' \
    "${0%/*}/system/usr" "$@"
END
    chmod +x "$PROCTOR_DOCKERD"
}

case ${1:-} in
start)
    unpack
    "$here/docker.sh" start
    ;;
run)
    DOCKER_HOST=$("$here/docker.sh" status)
    export DOCKER_HOST PATH="$unpacked:$PATH" # for tests that start an engine of their own
    "$here/python_image.sh"
    exec nsenter --net --target "$(cat "$PROCTOR_DOCKER_HOME/docker.pid")" -- "${@:2}"
    ;;
stop)
    "$here/docker.sh" stop
    rm -rf "$unpacked"
    ;;
*) "$here/docker.sh" "$@" ;;
esac
