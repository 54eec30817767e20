"""What brings the node to its desired state, and keeps it there."""
