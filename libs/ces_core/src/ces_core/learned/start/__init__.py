"""Learned start plans for the search: greedy construction by learned weights, in regions chosen by learned weights."""
