"""One readable file for each algorithm. Others join through the entry-point group ``ces.algorithms``."""
