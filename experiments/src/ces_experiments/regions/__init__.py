"""Regions: what their protocol decides, beside one cluster of the same size, and what it costs."""
