"""CES testbed: emulated edge hosts on one machine, and the local cluster behind ces up."""
