#!/usr/bin/env bash
# A real Docker engine for tests, beside any other of this machine and without a registry.
#   docker.sh start   install what is missing (Debian, Ubuntu), start the engine, make the image
#                     proctor-busybox:latest, print the address for DOCKER_HOST
#   docker.sh status  print the address; exit code 1 when no engine answers there
#   docker.sh stop    remove its containers, stop it, remove its files
# All of it is in PROCTOR_DOCKER_HOME, by default a folder of this user below the temporary one.
set -euo pipefail
# shellcheck source=tests/services/common.sh
. "$(dirname "$0")/common.sh"
home=${PROCTOR_DOCKER_HOME:-${TMPDIR:-/tmp}/proctor-docker-$(id -u)}
address=unix://$home/docker.sock
image=proctor-busybox:latest
dockerd=${PROCTOR_DOCKERD:-dockerd} # the program
patience=60 # seconds that the engine has to answer, or to stop

client() { DOCKER_HOST=$address DOCKER_CONTEXT='' timeout 60 docker "$@"; }
answers() { [ -S "$home/docker.sock" ] && client version >/dev/null 2>&1; }

install_missing() {
    local missing=()
    command -v "$dockerd" >/dev/null || missing+=(docker.io)
    is_static || missing+=(busybox-static)
    install_packages "the Docker engine" "${missing[@]}"
    command -v docker >/dev/null || as_root apt-get install -qy --no-install-recommends docker-cli >&2
}

engine_pid() { # the engine's own, never that of another process which got its number
    local pid
    pid=$(cat "$home/$1" 2>/dev/null) && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ] && echo "$pid"
}

launch() { # launch OPTION...: true when the engine answers and runs a container
    local tries=$((patience * 5))
    # A session of its own: Ctrl-C in the terminal that started it is not for it.
    as_root setsid "$dockerd" --host "$address" --group "$(id -gn)" --pidfile "$home/docker.pid" \
        --data-root "$home/data" --exec-root "$home/exec" "$@" >"$home/dockerd.log" 2>&1 </dev/null &
    while ! answers; do
        if ! kill -0 $! 2>/dev/null || [ $((tries -= 1)) -le 0 ]; then return 1; fi
        sleep 0.2
    done
    make_image && client run --rm $image true >&2
}

make_image() {
    if client image inspect $image >/dev/null 2>&1; then return; fi
    local root=$home/root
    rm -rf "$root"
    busybox_root "$root"
    tar -C "$root" --owner 0 --group 0 -c . | client import -c 'CMD ["/bin/sh"]' -c 'ENV PATH=/bin:/usr/bin' - $image >&2
    rm -rf "$root"
}

end() { # end PID_FILE NAME
    local pid tries=$((patience * 5))
    pid=$(engine_pid "$1" "$2") || return 0
    as_root kill "$pid" 2>/dev/null || return 0
    while [ -n "$(engine_pid "$1" "$2")" ]; do
        [ $((tries -= 1)) -gt 0 ] || as_root kill -KILL "$pid" 2>/dev/null || true
        [ $tries -gt -50 ] || return 1
        sleep 0.2
    done
}

stop() {
    if answers; then client ps -aq | xargs -r env DOCKER_HOST="$address" timeout 60 docker rm -f >/dev/null || true; fi
    end docker.pid dockerd
    end exec/containerd/containerd.pid containerd
    remove_home "$home"
}

start() {
    local options
    if answers; then make_image; return; fi
    install_missing
    # In a container there may be no iptables, no bridge, and no overlay on top of its own overlay.
    for options in "" "--iptables=false --ip6tables=false --bridge=none" \
        "--iptables=false --ip6tables=false --bridge=none --storage-driver=vfs"; do
        stop
        mkdir -p "$home"
        # shellcheck disable=SC2086  # several words
        if launch $options; then return; fi
        say "the engine did not work with the options '$options'; the end of its log:"
        tail -n 20 "$home/dockerd.log" >&2
    done
    stop
    exit 1
}

case ${1:-} in
start)
    start
    echo "$address"
    ;;
status)
    if ! answers; then
        say "no engine answers at $address; start one: ${PROCTOR_DOCKER_SCRIPT:-$0} start"
        exit 1
    fi
    echo "$address"
    ;;
stop) stop ;;
*)
    say "usage: ${PROCTOR_DOCKER_SCRIPT:-$0} start|status|stop"
    exit 2
    ;;
esac
