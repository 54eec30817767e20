"""A new SQLite file that several open at once."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from sqlalchemy import text
from stamina.instrumentation import set_on_retry_hooks

from ces_common.db import new_engine


def test_a_file_that_another_writes_is_waited_for(tmp_path: Path) -> None:
    """SQLite refuses at once to change the journal of a file that somebody writes, whatever the busy timeout."""
    file, tried = tmp_path / "ces.db", Event()
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    set_on_retry_hooks([lambda details: tried.set()])
    opened = new_engine(f"sqlite:///{file}")
    with ThreadPoolExecutor(1) as threads:
        mode = threads.submit(lambda: opened.connect().scalar(text("PRAGMA journal_mode")))
        assert tried.wait(10)
        other.execute("ROLLBACK")
        assert mode.result(10) == "wal"
    set_on_retry_hooks(None)
    opened.dispose()
    other.close()
