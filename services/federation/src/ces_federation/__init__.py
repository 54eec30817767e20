"""CES federation: which region to ask; holds and decisions across regions."""
