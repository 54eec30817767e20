"""The dashboard: a page without a build step, served as it lies here."""
