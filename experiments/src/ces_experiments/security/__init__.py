"""What a node's credential is worth in hostile hands: fuzzed messages, and a rogue agent in a cluster that trains."""
