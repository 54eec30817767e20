"""Tasks that share GPUs."""
