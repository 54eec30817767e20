"""All tables together, as the migrations make them."""

from __future__ import annotations

from ces_common.db.access_tables import AccessTokenRow
from ces_common.db.history_tables import KeyframeRow

# Of these modules' tables, and of those that they stand on.
METADATA = AccessTokenRow.metadata
assert KeyframeRow.metadata is METADATA
