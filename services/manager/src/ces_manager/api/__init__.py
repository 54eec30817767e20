"""The REST API: thin routes over the manager's transactions."""
