"""Jobs whose CPU is chosen by CES and changes in place, against the same jobs with fixed requests."""
