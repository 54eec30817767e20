"""Sending tasks that share GPUs to clusters of hosts."""
