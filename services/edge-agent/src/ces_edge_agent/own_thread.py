"""Work that changes the thread it runs in, such as entering a namespace."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def in_own_thread(function: Callable[[], Result], name: str) -> Result:
    """Call ``function`` in a thread that ends afterwards, so that no other thread of the agent leaves its namespaces.
    Blocking. Raises what the function raises."""
    results: list[Result] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(function())
        except Exception as error:  # handed to the caller below
            errors.append(error)

    thread = threading.Thread(target=run, name=name)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
