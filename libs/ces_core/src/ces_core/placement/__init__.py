"""A placement under construction, held in flat arrays: the state shared by every search, rule and policy.

The code is compiled where numba is installed and runs as plain Python over numpy arrays elsewhere. Names and objects
stay outside: a problem enters as a :class:`~ces_core.placement.view.ProblemView`.
"""
