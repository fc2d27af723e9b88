"""Sandboxes in containers of Docker and of Podman, by the engine's API."""
