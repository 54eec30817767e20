"""What the manager hears, answers and publishes on the bus."""
