"""What CPU time tasks take for each step, and what that tells of other nodes."""
