#!/usr/bin/env bash
# The image proctor-python:latest for the engine at DOCKER_HOST (or at the addresses named): this machine's own Python
# and a busybox, since no registry may be reachable. What is there already is kept.
#   python_image.sh [ADDRESS...]
set -euo pipefail
# shellcheck source=tests/services/common.sh
. "$(dirname "$0")/common.sh"
image=proctor-python:latest
client() { DOCKER_HOST=$1 DOCKER_CONTEXT='' timeout 120 docker "${@:2}"; }

python=/usr/bin/python3
[ -x $python ] || python=$(command -v python3)
folders=$("$python" -c 'import sys, sysconfig; print(sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))')

make_root() { # make_root FOLDER
    local root=$1 name file
    busybox_root "$root"
    mkdir -p "$root"/usr/{lib,local/bin}
    # The interpreter where it is at home, its library without what nobody imports, and what both are linked to.
    cp --parents -L "$(readlink -f "$python")" "$root/"
    ln -s "$(readlink -f "$python")" "$root/usr/local/bin/python3"
    ln -s python3 "$root/usr/local/bin/python"
    for name in $(printf '%s\n' $folders | sort -u); do
        tar -c --exclude=test --exclude=__pycache__ --exclude=dist-packages --exclude=site-packages \
            --exclude='config-*' --exclude=idlelib --exclude=tkinter "$name" 2>/dev/null | tar -x -C "$root"
    done
    { echo "$python"; find "$root" -name '*.so' -path '*lib-dynload*'; } | xargs -n 1 ldd 2>/dev/null |
        grep -o '/[^ ]*\.so[^ ]*' | sort -u | while read -r file; do cp --parents -L "$file" "$root/"; done
}

if [ $# = 0 ]; then set -- "${DOCKER_HOST:?names no engine}"; fi
for address in "$@"; do
    if client "$address" image inspect $image >/dev/null 2>&1; then continue; fi
    if [ -z "${root:-}" ]; then
        root=$(mktemp -d)
        trap 'rm -rf "$root"' EXIT
        make_root "$root"
    fi
    tar -C "$root" --owner 0 --group 0 -c . |
        client "$address" import -c 'CMD ["/bin/sh"]' -c 'ENV PATH=/usr/local/bin:/bin:/usr/bin' - $image >/dev/null
    client "$address" run --rm --network none $image python3 -c 'import json, hashlib, decimal, zlib' >&2
    say "made $image at $address"
done
