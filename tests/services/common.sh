# shellcheck shell=bash
# What the scripts of this folder share; they source it.

say() { echo "${0##*/}: $*" >&2; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
is_static() { [ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1; }

install_packages() { # install_packages WHAT PACKAGE...: of Debian or Ubuntu; elsewhere, WHAT is asked for
    local what=$1
    shift
    if [ $# = 0 ]; then return; fi
    if ! command -v apt-get >/dev/null; then
        say "$*: not here, and no apt-get; install $what and a static busybox at /bin/busybox"
        exit 1
    fi
    say "installing $*"
    as_root apt-get update -q >&2
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" >&2
}

busybox_root() { # busybox_root FOLDER: make it the root of an image that has a busybox and nothing else
    local root=$1 name
    mkdir -p "$root"/{bin,etc,proc,root,sys,tmp,usr/bin}
    chmod 1777 "$root/tmp"
    cp /bin/busybox "$root/bin/"
    for name in $(/bin/busybox --list); do [ "$name" = busybox ] || ln -s busybox "$root/bin/$name"; done
    ln -s /bin/env "$root/usr/bin/env"
    printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n' >"$root/etc/passwd"
    printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
}

remove_home() { # remove_home FOLDER: with what a killed engine left mounted below it, the deepest first
    local mounted
    awk -v home="$1/" 'index($2, home) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mounted; do
        as_root umount "$mounted" || true
    done
    as_root rm -rf "$1"
}
