"""The columns of rows that messages have under the same names."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel
from sqlalchemy import inspect

from ces_common.db.tables import Base


def shared_columns(row: Base, model: type[BaseModel]) -> dict[str, Any]:
    """Name -> value of each column that ``model`` has a field for; columns that are read only when asked for are left
    out."""
    return {name: getattr(row, name) for name in _shared_names(type(row), model)}


@cache
def _shared_names(table: type[Base], model: type[BaseModel]) -> list[str]:
    columns = inspect(table).column_attrs
    return [column.key for column in columns if column.key in model.model_fields and not column.deferred]
