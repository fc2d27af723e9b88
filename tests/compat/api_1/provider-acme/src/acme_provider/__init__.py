"""Models of Acme for Proctor."""
