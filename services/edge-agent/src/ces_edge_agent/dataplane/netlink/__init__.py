"""Reading and changing the kernel's objects."""
