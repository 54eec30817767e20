"""Datasets on this node, served read-only to the workers that may read them."""
