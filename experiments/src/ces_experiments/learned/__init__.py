"""Learned policies: the thesis's simulation, unknown networks, quality over time, balance against bandwidth, warm
start."""
