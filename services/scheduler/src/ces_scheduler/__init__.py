"""CES scheduler: proposes plans against a snapshot version."""
