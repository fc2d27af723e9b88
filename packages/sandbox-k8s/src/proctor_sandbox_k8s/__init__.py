"""Sandboxes in pods of Kubernetes."""
