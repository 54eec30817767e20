"""Where the client library's errors become the port's, and where one is prevented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import nats.errors
import nats.js.errors
from nats.aio.client import Client

from ces_common.bus.port import BusError, BusUnavailable, NoResponder, PayloadTooLarge, RequestTimeout


@contextmanager
def translated(subject: str) -> Iterator[None]:
    """The library's errors as the port's."""
    try:
        yield
    except BusError:
        raise
    except nats.errors.NoRespondersError as error:
        raise NoResponder(f"nobody answers on {subject}") from error
    except (nats.js.errors.NoStreamResponseError, nats.js.errors.ServiceUnavailableError) as error:
        raise BusUnavailable(f"no stream stores {subject}") from error
    except TimeoutError as error:
        raise RequestTimeout(f"no answer on {subject} in time") from error
    except (
        nats.errors.ConnectionClosedError,
        nats.errors.ConnectionDrainingError,
        nats.errors.ConnectionReconnectingError,
        nats.errors.OutboundBufferLimitError,
        OSError,
    ) as error:
        raise BusUnavailable(f"lost the message broker while using {subject}") from error
    except nats.errors.Error as error:
        raise BusError(f"{subject}: {error}") from error


def check_size(client: Client, subject: str, data: bytes, headers: Mapping[str, str] | None) -> None:
    """The server counts the headers too, and closes the connection of whoever sends too much."""
    size = len(data)
    if headers:
        size += 12 + sum(len(key.encode()) + len(value.encode()) + 4 for key, value in headers.items())
    if size > client.max_payload:
        raise PayloadTooLarge(subject, size, client.max_payload)
