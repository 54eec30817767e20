"""Simulation of malleable jobs: traces, costs of resizing, idle edge servers, and the clock that asks a policy."""
