"""Learning for CES: environments, algorithms, and what makes a shipped file of a run. The only library with torch."""
