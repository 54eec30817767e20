"""The queue of waiting jobs, as the scheduler reports it."""
