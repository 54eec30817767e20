"""CES compute controller: the workers each node should be running."""
