"""The anytime search for jobs with goals: chains with deadlines, energy, reliability, groups and held tasks."""
