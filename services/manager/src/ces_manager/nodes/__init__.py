"""Nodes: joining, leases, failures, data, removal."""
