"""What the attacker is given: the stolen credential, where everything is, and more than a thief would know."""

from __future__ import annotations

import ssl

from pydantic import BaseModel, ConfigDict

from ces_common.natsauth.credentials import Credentials
from ces_common.tls.pins import trusting


class Target(BaseModel):
    """``others``: names of honest nodes and of services. ``allocations``: of jobs on other nodes, as allocation, job
    and task. ``authority``: the certificate (PEM) that API and broker are checked by; None: in the clear. ``machine``:
    how the stolen device called its boot. ``each``: messages of each kind, sent for ``seconds`` no faster than they are
    read; 0: rounds of all attacks instead, for ``seconds``."""

    model_config = ConfigDict(frozen=True)

    node: str
    jwt: str
    seed: str
    public_key: str
    nats_url: str
    api_url: str
    authority: str | None = None
    others: list[str]
    allocations: list[tuple[str, str, str]] = []
    machine: str = ""
    seconds: float
    each: int = 0
    chance: str = "1"

    @property
    def credentials(self) -> Credentials:
        return Credentials(self.jwt, self.seed)

    def tls(self) -> ssl.SSLContext | None:
        return None if self.authority is None else trusting(self.authority)
