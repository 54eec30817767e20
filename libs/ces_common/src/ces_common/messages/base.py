"""The base of every wire message."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Message(BaseModel):
    """Immutable; unknown fields are ignored, so that an older reader understands a newer writer."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="null")

    def encode(self) -> bytes:
        return self.model_dump_json(exclude_none=True).encode()
