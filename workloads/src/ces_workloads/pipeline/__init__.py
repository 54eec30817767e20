"""A pipeline of requests: a sender at its user's node, tasks that work on each request, and answers that come back."""
