"""Schedulers of others to compare with, each as a pure decision: sizes of jobs by name."""
