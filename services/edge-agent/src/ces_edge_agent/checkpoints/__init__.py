"""Checkpoints that outlive their node: packed, copied to another node, and fetched where the first task goes."""
