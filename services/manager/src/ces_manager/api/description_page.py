"""``/docs``: the API's description as a page that loads nothing and runs nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

PATH = "/docs"
STYLE = """
body { font-family: sans-serif; line-height: 1.4; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { font-size: 1rem; margin: 2rem 0 0.3rem; } code { font-family: monospace; } pre { overflow-x: auto; }
b { display: inline-block; min-width: 4.5rem; }
table { border-collapse: collapse; } td { padding: 0.1rem 1rem 0.1rem 0; vertical-align: top; }
"""
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
METHODS = ("get", "post", "put", "delete")


def description_route(describe: Callable[[], dict[str, Any]]) -> Route:
    """``describe``: gives the description in the words of OpenAPI."""

    async def docs(_: Request) -> HTMLResponse:
        return HTMLResponse(page(describe()), headers=HEADERS)

    return Route(PATH, docs)


def page(description: Mapping[str, Any]) -> str:
    info = description["info"]
    title = f"{info['title']} {info['version']}"
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1><p>{escape(info['description'])}</p>",
        "<p>Requests carry <code>Authorization: Bearer TOKEN</code>. "
        'For programs: <a href="/openapi.json">/openapi.json</a>.</p>',
    ]
    for path, operations in description["paths"].items():
        parts += [_operation(method, path, operations[method]) for method in METHODS if method in operations]
    parts.append("<h1>Documents</h1>")
    for name, schema in sorted(description.get("components", {}).get("schemas", {}).items()):
        shown = escape(json.dumps(schema, indent=2, ensure_ascii=False))
        parts.append(f'<details id="{escape(name)}"><summary>{escape(name)}</summary><pre>{shown}</pre></details>')
    return "".join([*parts, "</body></html>"])


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    rows = [(each["in"], each["name"], each.get("schema", {})) for each in operation.get("parameters", [])]
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        rows.append(("body", media, content.get("schema", {})))
    told = "".join(
        f"<tr><td>{escape(where)}</td><td><code>{escape(name)}</code></td><td>{_kind(schema)}</td></tr>"
        for where, name, schema in rows
    )
    head = f"<h2><b>{escape(method.upper())}</b><code>{escape(path)}</code></h2>"
    return f"{head}{escape(operation.get('description', ''))}<table>{told}</table>"


def _kind(schema: Mapping[str, Any]) -> str:
    """A schema in a few words, with links to those that have names."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"] if each.get("type") != "null")
    bounds = [f"{word} {schema[key]}" for key, word in _BOUNDS.items() if key in schema]
    return escape(", ".join([str(schema.get("type", "any")), *bounds]))


_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "maxLength": "greatest number of characters:",
    "format": "of the form",
}
