"""The thesis's real-environment experiment (4.3.3) on emulated hosts: schedulers compared by what their jobs get."""
