"""The conformance kit: what every plugin author runs."""

from proctor_testkit._network import OutsideNetworkError, loopback_only

__all__ = ["OutsideNetworkError", "loopback_only"]
