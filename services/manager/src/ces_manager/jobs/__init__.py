"""The life of jobs: submission, steps, records and views."""
