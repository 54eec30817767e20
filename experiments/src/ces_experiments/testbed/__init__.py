"""The thesis's experiment with devices, on ten emulated hosts: time until a model reaches an accuracy."""
