"""The sizes at which waiting malleable jobs are to start for the sake of their deadlines. Pure, with a memory."""

from __future__ import annotations

from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_scheduler.deadline_shares import JobShare, Judgement
from ces_scheduler.sizing import at_size


def needed_size(record: JobRecord, share: JobShare | None) -> int | None:
    """The size of its record, or that which it needs now to end in time, where that is larger."""
    if record.size is None or record.state is not JobState.QUEUED or share is None or not share.kept:
        return record.size
    return max(record.size, share.least)


class NeededSizes:
    """Gives the very same records, in the same list, while neither they nor what they need changes."""

    def __init__(self) -> None:
        self._asked: tuple[list[JobRecord], Judgement] | None = None
        self._found: list[JobRecord] = []
        self._sized: dict[str, tuple[JobRecord, JobRecord]] = {}  # job -> its record, and that at the size needed

    def of(self, waiting: list[JobRecord], judgement: Judgement) -> list[JobRecord]:
        """The waiting jobs, each at the size that it needs now: beginning smaller, it would soon restart."""
        if self._asked is not None and self._asked[0] is waiting and self._asked[1] is judgement:
            return self._found
        before, self._sized = self._sized, {}
        found = [self._at_size(record, judgement.shares.get(record.id), before) for record in waiting]
        if not self._sized:
            found = waiting
        elif len(found) == len(self._found) and all(
            one is other for one, other in zip(found, self._found, strict=True)
        ):
            found = self._found
        self._asked, self._found = (waiting, judgement), found
        return found

    def _at_size(
        self, record: JobRecord, share: JobShare | None, before: dict[str, tuple[JobRecord, JobRecord]]
    ) -> JobRecord:
        size = needed_size(record, share)
        if size is None or size == record.size:
            return record
        known = before.get(record.id)
        if known is None or known[0] is not record or known[1].size != size:
            known = record, at_size(record, size)
        self._sized[record.id] = known
        return known[1]
