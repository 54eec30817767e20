"""What the dashboard costs whoever opens it, and the manager that serves it, on a made-up cluster."""
