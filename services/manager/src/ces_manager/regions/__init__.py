"""What other regions are told of this one, and jobs that run in another region than they were submitted to."""
