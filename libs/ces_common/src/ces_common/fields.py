"""Kinds of fields in the files that people write: names, labels, and the base of every piece of a file."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, model_validator

MAX_LABELS = 256  # of a node, and those that a task asks for


def _without_null(text: str) -> str:
    """Refuses null characters: no program can be given one, and not every database stores them."""
    if "\0" in text:
        raise ValueError("must not contain a null character")
    return text


def _dataset_name(name: str) -> str:
    """Refuses what could lead out of a node's folder of datasets, in which the name becomes a folder's."""
    if not _DATASET.fullmatch(name):
        raise ValueError(
            f"{name!r} is no dataset's name: use 1 to 63 letters, digits, '.', '_' and '-', the first a letter or digit"
        )
    return name


NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
NODE_NAME = r"^[A-Za-z0-9_-]{1,63}$"
REGION_NAME = r"^[a-z0-9]{1,16}$"
ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
ARCH = r"^[a-z0-9_]{1,32}$"
FILE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,62}$"  # of a secret: none leads out of its folder
_DATASET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
Plain = AfterValidator(_without_null)
Name = Annotated[str, StringConstraints(pattern=NAME)]
NodeName = Annotated[str, StringConstraints(pattern=NODE_NAME)]
RegionName = Annotated[str, StringConstraints(pattern=REGION_NAME)]
DatasetName = Annotated[str, AfterValidator(_dataset_name)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=128), Plain]
EndName = Annotated[str, StringConstraints(max_length=128)]  # a task's, or a node's with its mark
SecretName = Annotated[str, StringConstraints(pattern=FILE_NAME)]
EnvName = Annotated[str, StringConstraints(pattern=ENV_NAME, max_length=128)]


class Document(BaseModel):
    """A piece of a user's file: unknown fields are refused, so that a typing error cannot pass unseen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PositiveRange(Document):
    """From ``min`` to ``max``, both above zero; a subclass says in which unit."""

    min: int
    max: int

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min <= 0:
            raise ValueError("min must be more than zero")
        if self.min > self.max:
            raise ValueError("min is more than max")
        return self
