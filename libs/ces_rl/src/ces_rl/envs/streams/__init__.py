"""Streams of jobs on one cluster, decided job by job: which of a few proposed plans a job gets, or whether it waits."""
