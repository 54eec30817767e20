"""How long every server of NATS waits for those at the other ends of its connections."""

from __future__ import annotations

from typing import Final

# A client that hangs is given up within 15 s, as clients give up a server; until then its share of what several
# managers divide among them is lost. One that says something meanwhile is not asked.
PING_EVERY_S: Final = 5
UNANSWERED_PINGS: Final = 2
BEGIN_S: Final = 5  # that the beginning of TLS may take; over a slow link it does
