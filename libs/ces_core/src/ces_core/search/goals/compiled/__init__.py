"""The compiled part: a job with goals as flat arrays, plans of it in slots, and how they are varied."""
