"""Acme's screen for Proctor."""
