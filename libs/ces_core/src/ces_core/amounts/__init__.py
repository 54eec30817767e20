"""How much of each resource a task gets, and where: tasks whose speed depends on their amounts, in edge clusters that
decide side by side (TapFinger: Li et al., INFOCOM 2023, arXiv 2302.00571)."""
