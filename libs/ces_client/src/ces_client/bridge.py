"""An address on this machine that leads to a manager. Browsers do not know the authority that certifies it; whoever
runs the command does, and the browser goes through here."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ces_client.context import Context
from ces_client.errors import Unreachable, bad_field
from ces_client.http import CONNECT_S
from ces_common.tls.pins import Untrusted, authority_at, fingerprint_of, trusting

HERE: Final = "127.0.0.1"
AT_ONCE: Final = 64  # connections
CHUNK: Final = 64 * 1024


def trust_of(context: Context) -> ssl.SSLContext | None:
    """What to check the manager by; None for plain HTTP. Raises BadInput, Unreachable."""
    if urlsplit(context.url).scheme == "http":
        return None
    pin = fingerprint_of(context.token or "")
    try:
        if context.ca is not None:
            return trusting(Path(context.ca).read_text())
        return trusting(None if pin is None else authority_at(context.url, pin))
    except Untrusted as error:
        raise Unreachable(context.url, str(error), "ask who runs it for a token of this cluster") from error
    except (OSError, ValueError) as error:
        raise Unreachable(context.url, str(error), "check that the manager runs there") from error


@asynccontextmanager
async def bridge(context: Context, trust: ssl.SSLContext | None, port: int) -> AsyncIterator[int]:
    """While the context lasts, connections to a port of this machine go on to the manager; gives the port. Bytes pass
    as they are, and nothing is added to them: whoever else comes by here needs a token as well. ``port``: 0 for any.
    Raises BadInput where it is taken."""
    parts = urlsplit(context.url)
    host, target = parts.hostname or "", parts.port or (80 if trust is None else 443)
    room = asyncio.Semaphore(AT_ONCE)
    passing: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        passing.add(task)
        task.add_done_callback(passing.discard)
        async with room:
            try:
                async with asyncio.timeout(CONNECT_S):
                    there, beyond = await asyncio.open_connection(host, target, ssl=trust)
            except OSError:  # also where it took too long: the browser shows that nothing answers
                writer.close()
                return
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(_passed_on(reader, beyond))
                    both.create_task(_passed_on(there, writer))
            except asyncio.CancelledError:
                pass  # the command ends, and asyncio's streams would show a task that was cancelled as an error
            finally:
                beyond.close()
                writer.close()

    try:
        server = await asyncio.start_server(serve, HERE, port)
    except OSError as error:
        remedy = "choose another one, or leave --port out"
        raise bad_field(f"Port {port} cannot be used", "port", error.strerror or str(error), remedy) from error
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.sleep(0)  # what was just accepted has its task by then
        while passing:
            for task in passing:
                task.cancel()
            await asyncio.wait(passing)


@contextmanager
def bridge_beside(context: Context) -> Iterator[int]:
    """``bridge`` in a thread of its own, on any port that is free. Raises BadInput, Unreachable."""
    bound: Future[int] = Future()
    end = threading.Event()

    async def serve() -> None:
        async with bridge(context, trust_of(context), 0) as port:
            bound.set_result(port)
            await asyncio.to_thread(end.wait)

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if bound.done():
                raise
            bound.set_exception(error)

    thread = threading.Thread(target=run, name="bridge", daemon=True)
    thread.start()
    try:
        yield bound.result()
    finally:
        end.set()
        thread.join()


async def _passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one of the two ends."""
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    with suppress(OSError, RuntimeError):
        writer.close()
