"""CES: wire messages, bus, state machines and settings shared by every service."""
