"""All tables together, as the migrations make them."""

from __future__ import annotations

from ces_common.db.access_tables import AccessTokenRow
from ces_common.db.trace_tables import SpanRow

# Of these modules' tables, and of those that they stand on.
assert AccessTokenRow.metadata is SpanRow.metadata
METADATA = AccessTokenRow.metadata
