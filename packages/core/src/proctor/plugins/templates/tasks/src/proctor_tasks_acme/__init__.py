"""Acme's evaluations: ``proctor eval acme/capitals``."""
