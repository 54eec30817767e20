"""The database: tables, engines, migrations, units of work, outbox and inbox. Used by the manager alone."""

from ces_common.db.engine import UNAVAILABLE, cause_of, database_url, new_engine
from ces_common.db.migrate import migrate
from ces_common.db.outbox import StoredEvent
from ces_common.db.uow import NoCluster, ReadTx, UnitOfWork, WriteTx

__all__ = [
    "UNAVAILABLE",
    "NoCluster",
    "ReadTx",
    "StoredEvent",
    "UnitOfWork",
    "WriteTx",
    "cause_of",
    "database_url",
    "migrate",
    "new_engine",
]
