"""Paths between pairs of nodes over directed links: all hop-shortest ones, or the K shortest simple ones."""
