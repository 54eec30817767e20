"""A node's data plane in the kernel: all networking code that needs root."""
