#!/bin/sh
# The engines that tests need, with their images; see docker.sh, podman.sh and python_image.sh.
set -eu
here=$(dirname "$0")
docker=$("$here/docker.sh" start)
podman=$("$here/podman.sh" start)
"$here/python_image.sh" "$docker" "$podman"
