"""Schedulers in simulated clusters: rounds of single jobs, and jobs that arrive, wait, run and leave.

Nothing here sleeps: time is simulated, and a decision takes none of it. Same seed, same run, unless a time limit cuts
searches short.
"""
