"""Every route of the REST API with the role that it needs, read from the routes themselves."""

from __future__ import annotations

import inspect

from fastapi.routing import APIRoute

from ces_common.roles import Role
from ces_manager.api.app import ROUTERS
from ces_manager.api.auth import Requires
from generator.markdown import code, table


def by_role() -> str:
    """A table: the role, and what it may ask for beyond those before it."""
    rows = [
        (" or ".join(_needed(route)), code(f"{method} {route.path}"), _first_sentence(route))
        for role in Role
        for route in _routes()
        if _needed(route)[:1] == (role,)
        for method in sorted(route.methods)
    ]
    return table(("least role", "request", "what it does"), rows)


def _routes() -> list[APIRoute]:
    found = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    return sorted(found, key=lambda route: route.path)


def _needed(route: APIRoute) -> tuple[Role, ...]:
    """One of these; none where anybody may ask."""
    return next((each.dependency.roles for each in route.dependencies if isinstance(each.dependency, Requires)), ())


def _first_sentence(route: APIRoute) -> str:
    text = " ".join(inspect.cleandoc(route.endpoint.__doc__ or "").split())
    first, stop, _ = text.partition(". ")
    return first + "." if stop else text
