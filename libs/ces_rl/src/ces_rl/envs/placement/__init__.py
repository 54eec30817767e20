"""Placing a job's tasks one by one, for any number of nodes and tasks."""
