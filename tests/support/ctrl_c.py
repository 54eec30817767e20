"""Programs that tests end by Ctrl-C."""

from __future__ import annotations

from collections.abc import Sequence


def heeding_ctrl_c(*command: str) -> Sequence[str]:
    """The command, which heeds Ctrl-C even where whoever runs these tests ignores it: shells have what they start in
    the background do so, and it is inherited."""
    return ["env", "--default-signal=INT", *command]
