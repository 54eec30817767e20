"""What exit codes of workers mean."""

from __future__ import annotations

from signal import Signals

_SIGNALLED = 128  # a process that a signal ended has this exit code plus the signal's number


def signal_name(exit_code: int) -> str | None:
    """``SIGKILL`` where the exit code says that a signal ended the process."""
    try:
        return Signals(exit_code - _SIGNALLED).name
    except ValueError:  # no signal has this number
        return None
