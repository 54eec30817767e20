"""Malleable jobs: how many GPUs each of them has now, so that deadlines are met. Decisions only, as pure functions."""
