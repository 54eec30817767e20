"""What is learned: a file or small folder for each problem. Others join through the entry-point group ``ces.envs``."""
