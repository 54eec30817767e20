"""Adjustment: what to change of a running job with goals.

:func:`ces_core.adjustment.decision.adjust` is the way in.
"""
