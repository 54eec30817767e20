"""Lending a device that has an owner: when it is idle, and how it is given back."""
