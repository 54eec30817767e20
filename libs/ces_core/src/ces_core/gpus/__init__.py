"""Tasks that share GPUs: where each goes, and on which cards."""
