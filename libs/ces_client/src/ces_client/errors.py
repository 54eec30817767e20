"""Errors of the SDK. Each carries an RFC 9457 problem, so that people and scripts read the same; the ``ces`` command
exits with ``exit_code``."""

from __future__ import annotations

from collections.abc import Sequence

from ces_common.messages.api import Problem


class CesError(Exception):
    """``problem.errors``: for each wrong field, ``field``, ``problem`` and ``remedy`` (as far as they are known)."""

    exit_code = 2

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.title}: {problem.detail}" if problem.detail else problem.title)
        self.problem = problem


class ApiError(CesError):
    """The manager refused a request, or could not carry it out."""

    @property
    def status(self) -> int:
        return self.problem.status


class Unreachable(CesError):
    """The manager gave no answer. ``url`` is where it was looked for."""

    def __init__(self, url: str, cause: str, remedy: str) -> None:
        super().__init__(_about_url("unreachable", f"No answer from {url}", 503, cause, remedy))
        self.url = url
        self.remedy = remedy


class UnexpectedAnswer(CesError):
    """Something answered, but not as the API does."""

    def __init__(self, url: str, cause: str) -> None:
        remedy = "check that the URL is a CES manager's and that client and manager have the same version"
        title = f"{url} gave an answer that is not the CES API's"
        super().__init__(_about_url("unexpected-answer", title, 502, cause, remedy))


def _about_url(kind: str, title: str, status: int, cause: str, remedy: str) -> Problem:
    errors = [{"field": "url", "problem": cause, "remedy": remedy}]
    return Problem(type=f"ces:{kind}", title=title, status=status, detail=cause, errors=errors)


class BadInput(CesError):
    """The user's input is wrong; nothing was sent."""

    def __init__(self, title: str, errors: Sequence[dict[str, str]]) -> None:
        super().__init__(Problem(type="ces:bad-input", title=title, status=422, errors=list(errors)))


def bad_field(title: str, field: str, problem: str, remedy: str) -> BadInput:
    """A BadInput about one field."""
    return BadInput(title, [{"field": field, "problem": problem, "remedy": remedy}])
