"""TapFinger (arXiv 2302.00571): agents of edge clusters place tasks and give them their amounts."""
