"""How many users of a city get their answers in time, by where their applications are placed."""
