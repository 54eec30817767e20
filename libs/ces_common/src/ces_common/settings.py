"""Settings every service has, read from environment variables ``CES_*``. Each service adds its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


class ServiceSettings(BaseSettings):
    """``CES_NATS_CREDS`` names a NATS credentials file, ``CES_CA`` the file of the authority that certifies a NATS of
    ``tls://`` URLs (left out: those that the machine trusts); ``CES_HTTP_PORT`` serves /healthz, /readyz and /metrics
    (0: any free port). ``CES_METRICS_TOKEN_FILE`` holds the token by which metrics may be read."""

    model_config = SettingsConfigDict(env_prefix="CES_", extra="ignore")

    nats_urls: Annotated[list[str], NoDecode] = ["nats://127.0.0.1:4222"]
    nats_creds: Path | None = None
    ca: Path | None = None
    http_host: str = "127.0.0.1"
    http_port: Annotated[int, Field(ge=0, le=65535)] = 0
    metrics_token_file: Path | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    resync_s: Annotated[float, Field(gt=0)] = 30.0  # how often the manager's snapshot is read without being asked

    @field_validator("nats_urls", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return [url.strip() for url in value.split(",") if url.strip()] if isinstance(value, str) else value

    @field_validator("ca", "metrics_token_file", mode="before")
    @classmethod
    def _no_file_if_empty(cls, value: object) -> object:
        return value or None

    @model_validator(mode="after")
    def _all_or_none_encrypted(self) -> Self:
        if not all(self.nats_urls) or {urlsplit(url).scheme for url in self.nats_urls} not in ({"tls"}, {"nats"}):
            raise ValueError("CES_NATS_URLS: begin all of them with tls://, or all with nats://")
        return self

    @property
    def encrypted(self) -> bool:
        """Whether NATS is reached by TLS."""
        return any(urlsplit(url).scheme == "tls" for url in self.nats_urls)
