"""What the dashboard's pages are drawn from: one picture of the cluster for all who look, and what changes in it."""
