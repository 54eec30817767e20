"""All tables together, as the migrations make them."""

from __future__ import annotations

from ces_common.db.access_tables import AccessTokenRow

METADATA = AccessTokenRow.metadata  # of this module's tables, and of those that it stands on
