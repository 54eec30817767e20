"""``search-longrun``: the search, with an eye on the jobs to come.

It maximises the composite, with balance weighed by what was learned that it is good for, plus what the room that it
leaves behind is worth by a learned value (:mod:`ces_core.value.value`). So a single plan of it mostly has a lower
composite than that of ``search``; what it is for is how many jobs find a place over time.
"""

from __future__ import annotations

from functools import cache

from ces_core.solvers.search import Search
from ces_core.value.value import SHIPPED, Value, load_value


@cache
def shipped() -> Value:
    """The value that comes with the core. Raises ValueFileError."""
    return load_value(SHIPPED)


SEARCH_LONGRUN = Search(
    "search-longrun", "search for the long run: also counts what is left for later jobs", value=shipped
)
