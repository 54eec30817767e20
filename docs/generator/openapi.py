"""The REST API's own description."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from ces_manager.api.app import make_app
from ces_manager.api.context import Context


@cache
def description() -> dict[str, Any]:
    """As the manager serves it under /openapi.json. Routes need their context only when they are called."""
    return make_app(cast(Context, None), lambda: None).openapi()
