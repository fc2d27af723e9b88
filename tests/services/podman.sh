#!/usr/bin/env bash
# A real Podman for tests: its service on a socket, beside any other of this machine and without a registry.
#   podman.sh start   install what is missing (Debian, Ubuntu), start the service, make the image
#                     proctor-busybox:latest, print the address for CONTAINER_HOST (or DOCKER_HOST)
#   podman.sh status  print the address; exit code 1 when no service answers there
#   podman.sh stop    remove its containers, stop it, remove its files
# All of it is in PROCTOR_PODMAN_HOME, by default a folder of this user below the temporary one.
set -euo pipefail
# shellcheck source=tests/services/common.sh
. "$(dirname "$0")/common.sh"
home=${PROCTOR_PODMAN_HOME:-${TMPDIR:-/tmp}/proctor-podman-$(id -u)}
address=unix://$home/podman.sock
image=proctor-busybox:latest
patience=60 # seconds that the service has to answer, or to stop

unset CONTAINER_HOST CONTAINER_CONNECTION # of a service that was started before: this is about the program itself
export CONTAINERS_CONF=$home/containers.conf
storage=(--root "$home/data" --runroot "$home/run" --cgroup-manager cgroupfs --events-backend file)
local_podman() { timeout 60 podman "${storage[@]}" "$@"; }
answers() { [ -S "$home/podman.sock" ] && curl -sf -m 5 --unix-socket "$home/podman.sock" http://d/_ping >/dev/null 2>&1; }

install_missing() {
    local missing=()
    command -v podman >/dev/null || missing+=(podman)
    command -v curl >/dev/null || missing+=(curl)
    is_static || missing+=(busybox-static)
    install_packages Podman "${missing[@]}"
}

write_settings() { # Podman's own limits are higher than what a container inside of a container may be given
    local files processes most
    files=$(ulimit -Hn) processes=$(ulimit -Hu) most=$(cat /proc/sys/kernel/pid_max)
    if [ "$files" = unlimited ] || [ "$files" -gt 65536 ]; then files=65536; fi
    if [ "$processes" = unlimited ] || [ "$processes" -gt "$most" ]; then processes=$most; fi
    printf '[containers]\ndefault_ulimits = ["nofile=%s:%s", "nproc=%s:%s"]\n' \
        "$files" "$files" "$processes" "$processes" >"$CONTAINERS_CONF"
}

launch() {
    local tries=$((patience * 5))
    # A session of its own: Ctrl-C in the terminal that started it is not for it.
    setsid podman "${storage[@]}" "$@" system service --time 0 "$address" >"$home/service.log" 2>&1 </dev/null &
    echo $! >"$home/service.pid"
    while ! answers; do
        if ! kill -0 $! 2>/dev/null || [ $((tries -= 1)) -le 0 ]; then return 1; fi
        sleep 0.2
    done
    make_image && local_podman run --rm --network none $image true >&2
}

make_image() {
    if local_podman image exists $image; then return; fi
    local root=$home/root
    rm -rf "$root"
    busybox_root "$root"
    tar -C "$root" --owner 0 --group 0 -c . | local_podman import -c 'CMD ["/bin/sh"]' -c 'ENV PATH=/bin:/usr/bin' - $image >&2
    rm -rf "$root"
}

service_pid() { # the service's own, never that of another process which got its number
    local pid
    pid=$(cat "$home/service.pid" 2>/dev/null) && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = podman ] && echo "$pid"
}

end_monitors() { # each command's monitor waits for five minutes, and would write to our folder then
    local command
    for command in /proc/[0-9]*/cmdline; do
        if tr '\0' ' ' 2>/dev/null <"$command" | grep -q "^[^ ]*conmon .*$home/data"; then
            command=${command#/proc/}
            kill -KILL "${command%/cmdline}" 2>/dev/null || true
        fi
    done
}

stop() {
    local pid tries=$((patience * 5))
    if [ -d "$home/data" ]; then local_podman rm -fa -t 0 >/dev/null 2>&1 || true; fi
    if pid=$(service_pid); then
        kill "$pid" 2>/dev/null || true
        while [ -n "$(service_pid)" ]; do
            [ $((tries -= 1)) -gt 0 ] || kill -KILL "$pid" 2>/dev/null || true
            [ $tries -gt -50 ] || return 1
            sleep 0.2
        done
    fi
    end_monitors
    remove_home "$home"
}

start() {
    local options
    if answers; then make_image; return; fi
    install_missing
    # In a container there may be no overlay on top of its own.
    for options in "" "--storage-driver=vfs"; do
        stop
        mkdir -p "$home"
        write_settings
        # shellcheck disable=SC2086  # several words, or none
        if launch $options; then return; fi
        say "the service did not work with the options '$options'; the end of its log:"
        tail -n 20 "$home/service.log" >&2
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
        say "no service answers at $address; start one: $0 start"
        exit 1
    fi
    echo "$address"
    ;;
stop) stop ;;
*)
    say "usage: $0 start|status|stop"
    exit 2
    ;;
esac
