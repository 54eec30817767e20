"""The data plane: what was allocated against what flows, and how quickly traffic is rerouted."""
