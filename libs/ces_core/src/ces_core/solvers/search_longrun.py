"""``search-longrun``: the search, with an eye on the jobs to come.

It maximises the composite, with balance weighed by what was learned that it is good for, plus what the room that it
leaves behind is worth by a learned value (:mod:`ces_core.value.value`). So a single plan of it mostly has a lower
composite than that of ``search``; what it is for is how many jobs find a place over time. More jobs at once fill the
links, so a job whose flows would come off much worse than on an idle cluster is told to wait.
"""

from __future__ import annotations

from ces_core.solvers.patient import Patient
from ces_core.solvers.search import Search
from ces_core.value.value import shipped

FORGONE = 0.1
"""Bandwidth satisfaction. With less jobs wait longer than need be where links are scarce, with 0.2 the jobs that run
are no better off than by ``search``: docs/benchmarks/longrun.md has what was tried."""

FORESEEING = Search("search-longrun", "counts what is left for later jobs", value=shipped)
"""The same without waiting."""
SEARCH_LONGRUN = Patient(
    FORESEEING.name,
    "search for the long run: counts what is left for later jobs, and waits where links are full",
    FORESEEING,
    FORGONE,
)
