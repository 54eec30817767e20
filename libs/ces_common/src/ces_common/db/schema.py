"""All tables together, as the migrations make them."""

from __future__ import annotations

from ces_common.db.access_tables import AccessTokenRow
from ces_common.db.audit_tables import AuditRow
from ces_common.db.availability_tables import LinkAvailabilityRow, NodeAvailabilityRow
from ces_common.db.energy_tables import AllocationEnergyRow, NodeEnergyRow
from ces_common.db.history_tables import KeyframeRow
from ces_common.db.move_tables import LastLookRow, MoveRow
from ces_common.db.region_tables import AwayRow, GuestRow, PartRow, SplitRow
from ces_common.db.trace_tables import SpanRow
from ces_common.db.work_tables import LearnedWorkRow

# Of each module that stands on ``tables``.
TABLES = (
    *(AccessTokenRow, AllocationEnergyRow, AuditRow, AwayRow, GuestRow, KeyframeRow, LastLookRow, LearnedWorkRow),
    *(MoveRow, LinkAvailabilityRow, NodeAvailabilityRow, NodeEnergyRow, PartRow, SpanRow, SplitRow),
)
METADATA = AccessTokenRow.metadata
