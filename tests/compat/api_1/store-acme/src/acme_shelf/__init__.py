"""A log store and an observer for Proctor."""
