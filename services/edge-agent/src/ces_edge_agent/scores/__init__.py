"""Measuring how fast the node is: in a short-lived process of its own, at the lowest priority."""
