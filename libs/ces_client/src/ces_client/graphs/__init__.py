"""Graphs of applications: the files that they come from, the job that their parts become, and their picture."""
