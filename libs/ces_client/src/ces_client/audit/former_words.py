"""Events of former versions, in the words of today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def in_present_words(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The event with the names of today: former versions called a flow's rate ``bandwidth``, and the queue status
    ``standing``."""
    renamed = {"queue_status": data["standing"]} if "standing" in data else {}
    for key in {"flows", "short"} & data.keys():
        renamed[key] = [{"rate": flow["bandwidth"]} | flow if "bandwidth" in flow else flow for flow in data[key]]
    return {**data, **renamed}
