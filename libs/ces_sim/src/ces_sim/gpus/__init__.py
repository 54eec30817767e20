"""Tasks that share GPUs, in simulation: published traces, one large cluster, and clusters of clusters."""
