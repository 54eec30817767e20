"""How often a running job is adjusted, and what that keeps and disturbs."""
