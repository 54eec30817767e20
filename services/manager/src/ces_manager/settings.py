"""The manager's settings, ``CES_*`` in the environment."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_address
from pathlib import Path
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator
from pydantic_settings import NoDecode

from ces_common.fields import RegionName
from ces_common.hosts import SUBNET_BITS, WORKERS
from ces_common.queuefile import QueueSettings
from ces_manager.timeouts import DAY_S, Timeouts

Seconds = Annotated[float, Field(gt=0)]


LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def is_unspecified(host: str) -> bool:
    """Whether it stands for every address of a machine."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def provider_url(url: str) -> str:
    """The URL, if an OpenID provider can be trusted there. Raises ValueError."""
    at = urlsplit(url)
    if at.username or at.password or at.query or at.fragment or at.port == 0:  # the port is looked at, and may be none
        raise ValueError("give its address alone, without a name, a password or a query")
    if (at.scheme == "https" and at.hostname) or (at.scheme == "http" and at.hostname in LOOPBACK):
        return url
    raise ValueError(f"{url} must begin with https://, unless it is on this machine")


class ManagerSettings(QueueSettings):
    """``admin_token_file`` holds the API's bearer token, ``agent_signing_key_file`` the seed of the scoped key that
    signs agents' credentials, ``revocation_key_file`` what it takes to have the credential of a forgotten node or a
    replaced device refused (which stays good until it ends where this is left out), ``secrets_key_file`` the keys that
    encrypt jobs' secrets (none are kept where this is left out). These files must be readable by their owner only.
    ``oidc_issuer``: an OpenID provider whose tokens admit people, if they are for ``oidc_audience``, as the file
    ``oidc_grants`` says.

    ``tls_dir``: the folder of the authority (``authority.pem`` and, where certificates are made here,
    ``authority.key``; made if there is none) and of the API's certificate (``api.pem``); left out, the API is plain
    HTTP.
    ``nats_certificate``: the file that NATS reads its certificate from, to be kept good by the manager."""

    http_port: Annotated[int, Field(ge=0, le=65535)] = 8080
    database_url: str = "sqlite:///ces.db"
    migrate: bool = True  # bring the schema up to date at start
    admin_token_file: Path
    agent_signing_key_file: Path
    revocation_key_file: Path | None = None
    secrets_key_file: Path | None = None
    oidc_issuer: Annotated[str, AfterValidator(provider_url)] | None = None
    oidc_audience: str = "ces"
    oidc_grants: Path | None = None
    oidc_ca: Path | None = None  # of its certificate; left out, those that the machine trusts
    advertised_nats_urls: Annotated[list[str], NoDecode] = []  # what agents are told; nats_urls when empty
    tls_dir: Path | None = None
    nats_certificate: Path | None = None
    tls_names: Annotated[list[str], NoDecode] = []  # besides this machine's own, and the hosts of NATS's URLs
    certificate_days: Annotated[float, Field(gt=0, le=3650)] = 90.0  # for which a server's certificate is good
    nats_replicas: Annotated[int, Field(ge=1, le=5)] = 1  # of the streams and the bucket; never lowered
    lease_s: Seconds = 30.0
    lease_margin_s: Seconds = 5.0
    unreachable_s: Seconds = 8.0
    planned_deadline_s: Seconds = 60.0
    preparing_deadline_s: Seconds = 60.0
    starting_deadline_s: Seconds = 120.0
    max_deadline_misses: Annotated[int, Field(ge=1)] = 3
    tick_s: Seconds = 1.0
    ui: bool = True  # serve the dashboard
    metrics_of_links: bool = True  # some series for each link
    trace_ratio: Annotated[float, Field(ge=0, le=1)] = 0.0  # of the jobs that are submitted
    retention_days: Annotated[float, Field(gt=0)] = 30.0  # of settled jobs
    region: RegionName | None = None  # one of several
    address_block: IPv4Network = WORKERS  # of workers, /24 for each node; no other region's may overlap it
    max_applicants: Annotated[int, Field(ge=0, le=1000)] = 0  # devices that may apply to be made nodes, at a time
    credential_days: Annotated[float, Field(gt=0, le=3650)] = 30.0  # for which a node's NATS credential is good

    @model_validator(mode="before")
    @classmethod
    def _split_urls(cls, values: dict[str, object]) -> dict[str, object]:
        for name in ("advertised_nats_urls", "tls_names"):
            listed = values.get(name)
            if isinstance(listed, str):
                values[name] = [part.strip() for part in listed.split(",") if part.strip()]
        return values

    @field_validator("address_block")
    @classmethod
    def _block_with_room(cls, value: IPv4Network) -> IPv4Network:
        if not value.subnet_of(WORKERS) or value.prefixlen > SUBNET_BITS:
            raise ValueError(f"{value} must lie in {WORKERS}, and have room for a /{SUBNET_BITS} at least")
        return value

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.unreachable_s >= self.lease_s:
            raise ValueError("CES_UNREACHABLE_S must be less than CES_LEASE_S: a silent node takes no new work first")
        return self

    @field_validator(
        "region",
        "secrets_key_file",
        "oidc_issuer",
        "oidc_grants",
        "oidc_ca",
        "tls_dir",
        "nats_certificate",
        mode="before",
    )
    @classmethod
    def _none_if_empty(cls, value: object) -> object:
        return value or None

    @model_validator(mode="after")
    def _provider_with_grants(self) -> Self:
        if (self.oidc_issuer is None) != (self.oidc_grants is None):
            raise ValueError("CES_OIDC_ISSUER and CES_OIDC_GRANTS go together: set both, or none")
        return self

    @model_validator(mode="after")
    def _agents_as_encrypted(self) -> Self:
        """An agent goes where it is told to."""
        wrong = [url for url in self.advertised_nats_urls if (urlsplit(url).scheme == "tls") != self.encrypted]
        if wrong:
            scheme = "tls" if self.encrypted else "nats"
            raise ValueError(f"CES_ADVERTISED_NATS_URLS: {wrong[0]} must begin with {scheme}://, as CES_NATS_URLS does")
        if self.nats_certificate is not None and self.tls_dir is None:
            raise ValueError("CES_NATS_CERTIFICATE needs CES_TLS_DIR, where the authority is that makes it")
        return self

    @property
    def server_names(self) -> list[str]:
        """What the servers' certificates are for: host names and addresses."""
        urls = [urlsplit(url).hostname for url in (*self.nats_urls, *self.advertised_nats_urls)]
        own = [] if is_unspecified(self.http_host) else [self.http_host]
        return sorted({*LOOPBACK, *own, *(host for host in urls if host), *self.tls_names})

    @field_validator("tls_dir")
    @classmethod
    def _key_kept(cls, value: Path | None) -> Path | None:
        key = value / "authority.key" if value is not None else None
        if key is not None and key.exists() and key.stat().st_mode & 0o077:
            raise ValueError(f"{key} can be read by others: chmod 600 it")
        return value

    def timeouts(self) -> Timeouts:
        return Timeouts(
            lease_s=self.lease_s,
            margin_s=self.lease_margin_s,
            unreachable_after_s=self.unreachable_s,
            planned_s=self.planned_deadline_s,
            preparing_s=self.preparing_deadline_s,
            starting_s=self.starting_deadline_s,
            max_late=self.max_deadline_misses,
            keep_jobs_s=self.retention_days * DAY_S,
        )

    @property
    def agents_nats_urls(self) -> list[str]:
        return self.advertised_nats_urls or self.nats_urls
