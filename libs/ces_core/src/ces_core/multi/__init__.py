"""CES-Multi: which of many waiting jobs start now, in what order, and what the others wait for.

A cycle (:func:`ces_core.multi.cycle.cycle`) is a function from values to values: the same queue, cluster and memory
give the same decisions. Where a job goes is the single-job solver's to say; this package asks it, in an order and on a
cluster that leave room for those who must not wait longer.
"""
