"""The thesis's own environment: its state, masks, rewards and network (4.2)."""
