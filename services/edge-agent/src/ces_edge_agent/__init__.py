"""CES edge agent: makes its node match what is desired."""
