from docker_engine import docker_engine

__all__ = ["docker_engine"]
