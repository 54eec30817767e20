"""``ces up``, ``ces down``, ``ces testbed`` and ``ces demo``."""
