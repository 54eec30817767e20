"""What is wrong with a field, in plain words that say what to write instead: pydantic's are for programmers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

from ces_common.fields import ARCH, ENV_NAME, FILE_NAME, NAME, NODE_NAME

_SPELT = {
    NAME: "use 1 to 63 lower-case letters, digits and '-', the first and the last a letter or digit",
    NODE_NAME: "use 1 to 63 letters, digits, '_' and '-'",
    ENV_NAME: "use letters, digits and '_', the first no digit",
    FILE_NAME: "use 1 to 63 letters, digits, '.', '_' and '-', the first a letter, a digit or '_'",
    ARCH: "use 1 to 32 lower-case letters, digits and '_', like x86_64 or aarch64",
}
_FIELDS = "must hold fields with values"
_NUMBER, _WHOLE = "must be a number", "must be a whole number"
_TIME = "must be a time with its time zone, like 2030-01-01T12:00:00Z"
_PLAIN = {
    "missing": "is missing; add it",
    "extra_forbidden": "unknown field; remove it, or correct its spelling",
    "string_type": "must be text",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": _NUMBER,
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": _FIELDS,
    "model_type": _FIELDS,
    "model_attributes_type": _FIELDS,
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "timezone_aware": _TIME,
}
_WITH_BOUNDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda bound: f"must be more than {_plain_number(bound['gt'])}",
    "greater_than_equal": lambda bound: f"must be at least {_plain_number(bound['ge'])}",
    "less_than": lambda bound: f"must be less than {_plain_number(bound['lt'])}",
    "less_than_equal": lambda bound: f"must be at most {_plain_number(bound['le'])}",
    "string_too_long": lambda bound: f"must have at most {bound['max_length']} characters",
    "string_too_short": lambda bound: f"must have at least {bound['min_length']} characters",
    "too_long": lambda bound: f"must have at most {bound['max_length']} entries, has {bound['actual_length']}",
    "too_short": lambda bound: f"must have at least {bound['min_length']} entries, has {bound['actual_length']}",
    "literal_error": lambda bound: f"must be {bound['expected']}",
    "enum": lambda bound: f"must be {bound['expected']}",
    "string_pattern_mismatch": lambda bound: _SPELT.get(bound["pattern"], f"must match {bound['pattern']}"),
}


def _plain_number(bound: Any) -> Any:
    """``0`` for 0.0: a bound is not written the way of programs either."""
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


def plain_problem(error: ErrorDetails | Mapping[str, Any]) -> str:
    """One of pydantic's findings in plain words, without the field's name; texts of our own validators stay."""
    kind = error["type"]
    if kind in _WITH_BOUNDS:
        return _WITH_BOUNDS[kind](error.get("ctx", {}))
    return _PLAIN.get(kind) or str(error["msg"]).removeprefix("Value error, ")
