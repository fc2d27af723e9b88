"""The command ``proctor acme``."""
