"""Secrets of tenants, encrypted at rest, and who is given them."""
