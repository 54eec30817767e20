"""What the manager refuses, and why. Nothing changes where one of these is raised."""

from __future__ import annotations


class ManagerError(Exception):
    """``detail`` is for the user."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class NotFound(ManagerError):
    """No such thing."""


class Conflict(ManagerError):
    """It contradicts the present state."""


class Forbidden(ManagerError):
    """The token given does not allow it."""


class NoRole(Forbidden):
    """Who asks is known, and has no role here."""


class Malformed(ManagerError):
    """The request is no JSON."""


class TooLarge(ManagerError):
    """The request's body is larger than what is read of its kind."""


class WrongMediaType(ManagerError):
    """The request's body is sent as something else than JSON."""


class Invalid(ManagerError):
    """A field that passes the schema but makes no sense. ``field``: its path in the request."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.remedy = detail


class Overloaded(ManagerError):
    """It cannot be done now, for others are being served."""


class Unavailable(ManagerError):
    """Somebody who must be asked does not answer."""
