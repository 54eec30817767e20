"""How near to the optimum jobs with deadlines, energy and reliability are placed within milliseconds."""
