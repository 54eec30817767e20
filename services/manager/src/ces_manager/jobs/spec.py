"""The job file as it was submitted, stored with its job: fields that need no column of their own are read from
there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from sqlalchemy import Text, bindparam, select, type_coerce

from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx
from ces_common.jobfile import JobFile

# As text: to validate a job file of thousands of edges takes longer than all that is wanted of it here.
_SPECS = select(JobRow.id, type_coerce(JobRow.spec, Text)).where(JobRow.id.in_(bindparam("jobs", expanding=True)))
_EXPANDED = {"tasks", "flows"}  # the row has them written out


def spec_fields(tx: ReadTx, jobs: Sequence[str], model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """For each job, the fields of its job file that ``model`` has under the same name, as JSON has them. A field that
    is younger than the job is absent."""
    names = (JobFile.model_fields.keys() & model.model_fields.keys()) - _EXPANDED
    if not jobs:
        return {}
    specs = {job: json.loads(text) for job, text in tx.session.execute(_SPECS, {"jobs": list(jobs)})}
    return {job: {name: spec[name] for name in names & spec.keys()} for job, spec in specs.items()}
