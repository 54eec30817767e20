"""What residual capacity is worth to jobs that come later (:mod:`ces_core.value`)."""
