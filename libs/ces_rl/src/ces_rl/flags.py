"""A settings dataclass as flags of a command: each field one flag, with its description, default and limits."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

SCALARS = (int, float, bool, str)


def parameters(settings: type, defaults: Mapping[str, Any], panel: str) -> list[inspect.Parameter]:
    """Keyword parameters for typer, one for each field; ``defaults`` go before the dataclass's own. Fields that are no
    plain number, switch or text are given as text: see :func:`parse`."""
    found = []
    for name, hint in get_type_hints(settings, include_extras=True).items():
        kind, info = _parts(hint)
        value = defaults_of(settings, defaults)[name]
        described = (info.description if info else None) or ""
        option = typer.Option(f"--{name.replace('_', '-')}", help=described, rich_help_panel=panel)
        if kind is bool:
            option = typer.Option(help=described, rich_help_panel=panel)
        plain = kind in SCALARS
        found.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=value if plain else text_of(value),
                annotation=Annotated[kind if plain else str, option],
            )
        )
    return found


def read(settings: type, given: Mapping[str, Any]) -> Any:
    """The settings from the values of such parameters. Raises typer.BadParameter, naming the flag."""
    hints = get_type_hints(settings, include_extras=True)
    found = {}
    for name, hint in hints.items():
        try:
            found[name] = parse(hint, given[name])
        except (ValidationError, ValueError) as error:
            reason = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise typer.BadParameter(f"{given[name]!r}: {reason}", param_hint=f"--{name.replace('_', '-')}") from error
    return settings(**found)


def defaults_of(settings: type, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Field -> default. Raises KeyError for a default of no field."""
    own = {field.name: _default(field) for field in fields(settings)}
    unknown = set(defaults) - set(own)
    if unknown:
        raise KeyError(f"{settings.__qualname__} has no {', '.join(sorted(unknown))}")
    return own | dict(defaults)


def parse(hint: Any, given: Any) -> Any:
    """A value of a field's type from what was given: ``1.2,1`` for a tuple of numbers, ``thesis=3,tight=1`` for a
    mapping, ``none`` for nothing, JSON for the rest. Raises ValueError or pydantic's ValidationError."""
    kind, _ = _parts(hint)
    adapter = TypeAdapter(hint)
    if kind in SCALARS or not isinstance(given, str):
        return adapter.validate_python(given)
    if given == "none":
        return adapter.validate_python(None)
    shapes = {get_origin(each) for each in (kind, *get_args(kind))}  # of an optional one, too
    if dict in shapes:
        pairs = [each.partition("=") for each in given.split(",") if each]
        if any(not middle for _, middle, _ in pairs):
            raise ValueError("must look like name=number,name=number")
        return adapter.validate_python({name.strip(): number for name, _, number in pairs})
    if tuple in shapes and not given.lstrip().startswith("["):
        return adapter.validate_python(tuple(each.strip() for each in given.split(",") if each.strip()))
    return adapter.validate_json(given)


def text_of(value: Any) -> str:
    """What :func:`parse` reads as ``value``."""
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ",".join(f"{name}={number:g}" for name, number in value.items())
    if isinstance(value, tuple) and not any(isinstance(each, tuple) for each in value):
        return ",".join(f"{each!r}" for each in value)
    return TypeAdapter(type(value)).dump_json(value).decode()


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _parts(hint: Any) -> tuple[Any, FieldInfo | None]:
    if get_origin(hint) is not Annotated:
        return hint, None
    kind, *notes = get_args(hint)
    return kind, next((note for note in notes if isinstance(note, FieldInfo)), None)
