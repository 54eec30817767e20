"""The one error that leaves this package."""

from __future__ import annotations


class DataPlaneError(Exception):
    """The kernel refused a step of the data plane, or something that it needs is not there. The text says what."""
