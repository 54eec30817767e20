"""What runs on the device. See ``serving``."""
