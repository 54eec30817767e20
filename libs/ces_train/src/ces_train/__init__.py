"""Training of the learned scheduler: the only package with torch."""
