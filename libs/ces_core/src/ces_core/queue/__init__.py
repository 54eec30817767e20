"""CES-Multi: decides which of many waiting jobs start now, in what order, and what the others wait for.

:func:`ces_core.queue.cycle.cycle` is a pure function: the same queue, cluster and memory give the same decisions.
Single-job solvers choose the nodes; this package chooses the order, and reserves capacity for jobs that have waited too
long.
"""
