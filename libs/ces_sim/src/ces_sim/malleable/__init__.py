"""Simulation of malleable jobs: traces, costs of resizing, availability of edge servers, and the clock that asks a policy."""
