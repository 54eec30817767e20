"""The thesis's own learned schedulers: padded state, nodes first, then a bandwidth level for each flow."""
