"""What can go wrong for a user of the API. Every error carries an RFC 9457 problem, so that people and scripts read the
same thing; the ``ces`` command ends with ``exit_code``."""

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
        super().__init__(
            Problem(
                type="ces:unreachable",
                title=f"No answer from {url}",
                status=503,
                detail=cause,
                errors=[{"field": "url", "problem": cause, "remedy": remedy}],
            )
        )
        self.url = url
        self.remedy = remedy


class UnexpectedAnswer(CesError):
    """Something answered, but not with what the API promises."""

    def __init__(self, url: str, cause: str) -> None:
        remedy = "check that the URL is a CES manager's and that client and manager have the same version"
        super().__init__(
            Problem(
                type="ces:unexpected-answer",
                title=f"{url} gave an answer that is not the CES API's",
                status=502,
                detail=cause,
                errors=[{"field": "url", "problem": cause, "remedy": remedy}],
            )
        )


class BadInput(CesError):
    """What the user gave is wrong, found before anything was sent."""

    def __init__(self, title: str, errors: Sequence[dict[str, str]], detail: str = "") -> None:
        super().__init__(Problem(type="ces:bad-input", title=title, status=422, detail=detail, errors=list(errors)))


def bad_field(title: str, field: str, problem: str, remedy: str) -> BadInput:
    return BadInput(title, [{"field": field, "problem": problem, "remedy": remedy}])
