"""A policy that evolves: decisions on record, comparisons, and which version is live."""
