"""What ``ces bench`` measures of solvers, and what every measurement needs: spreads, the machine, tables, plots."""
