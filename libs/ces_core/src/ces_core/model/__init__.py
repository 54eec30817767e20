"""The problem model: clusters and jobs, the plans that answer them, and their metrics. Imports no algorithm."""
