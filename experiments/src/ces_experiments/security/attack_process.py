"""The attacker's process, started and waited for."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

from ces_experiments.security.target import Target

MODULE: Final = "ces_experiments.security.attacker"
LONGER_S: Final = 600.0  # than it was asked for; then it is ended


class AttackFailedError(RuntimeError):
    """The attacker itself has failed, so that nothing was shown."""


async def attack(target: Target) -> dict[str, Any]:
    """What it found. Raises AttackFailedError."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", MODULE,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(target.seconds + LONGER_S):
            said, complaint = await process.communicate(target.model_dump_json().encode())
    except TimeoutError:
        raise AttackFailedError("the attacker did not come to an end") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise AttackFailedError(complaint.decode(errors="replace")[-2000:])
    found: dict[str, Any] = json.loads(said)
    return found
