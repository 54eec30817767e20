"""Inference of learned policies: their input, how they are asked, and how their scores become plans."""
