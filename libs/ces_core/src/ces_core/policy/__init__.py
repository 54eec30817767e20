"""The learned scheduler without its training: what a policy sees, how it is asked, and how its answers become plans."""
