"""Whether links work, and what they carry."""
