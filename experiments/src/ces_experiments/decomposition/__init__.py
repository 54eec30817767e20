"""How well graphs of applications are divided, and where their parts go."""
