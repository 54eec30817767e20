"""Learned proposals: quick first plans by a few weighted numbers per node, and among which nodes to look for them."""
