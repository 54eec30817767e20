"""What runs on the device. See ``server``."""
