"""Placement problems to learn on: drawn in compiled code or read from files, packed, and held out for validation."""
