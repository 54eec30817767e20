"""A scheduler's proposals: what fits is committed, the rest rejected."""
