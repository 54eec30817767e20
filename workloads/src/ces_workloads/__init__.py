"""CES workloads: the training programs that run as workers."""
