"""Thousands of nodes on one manager: whether all keep their leases while jobs come, links flap and it stalls."""
