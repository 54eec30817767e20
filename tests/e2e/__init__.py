"""Tests on real clusters; a package, so that the cluster which they share ends with the last of them."""
