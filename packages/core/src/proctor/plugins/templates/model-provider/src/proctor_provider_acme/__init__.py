"""Acme's models for Proctor."""
