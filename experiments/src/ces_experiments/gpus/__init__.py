"""Experiments with tasks that share GPUs."""
