"""Logs of Proctor in Acme's store."""
