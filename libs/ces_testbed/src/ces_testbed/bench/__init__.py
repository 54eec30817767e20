"""``ces bench``: measurements with tables, ``results.json`` and plots."""
