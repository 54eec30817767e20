"""CES Python SDK and the ces command."""
