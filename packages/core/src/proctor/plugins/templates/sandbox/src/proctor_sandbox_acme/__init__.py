"""Acme's sandboxes for Proctor."""
