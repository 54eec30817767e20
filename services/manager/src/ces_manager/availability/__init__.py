"""For which share of the time nodes and links are there: learned from what was heard of them."""
