"""Encrypted links: the WireGuard that their tunnels travel inside, its keys, and its two implementations."""
