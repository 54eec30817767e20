"""How much tasks get, and where: TapFinger's rules, its learned policies, and what both are published with."""
