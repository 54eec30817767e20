"""Broken reservations are found, and excused where the cluster or a job gave a reason."""

from __future__ import annotations

from dataclasses import replace

from audit_logs import (
    INVENTORY,
    START,
    Fact,
    allocation,
    asked,
    done,
    findings,
    found,
    job,
    node,
    ready,
    started,
    waiting,
)


class TestPromises:
    """j is promised a start while k runs, which says that it runs for 15 s, and holds its place for as many."""

    INVENTORY = replace(
        INVENTORY, jobs={"j": INVENTORY.jobs["j"], "k": asked((600, 10, 0), (600, 10, 0), expected_s=15)}
    )
    OTHERS = [*ready("a", "b"), job("queued", None, name="k"), *started(name="k", number=2)]  # its plan: event 6
    SOON = "2026-01-01T00:00:19+00:00"

    def story(self, *meanwhile: Fact, start_at: str = SOON, late: int = 0) -> list[Fact]:
        quiet: Fact = ("network.ready", {})
        facts = [*self.OTHERS, job("queued", None), waiting(start_at), *meanwhile, *done(name="k")]
        return [*facts, *[quiet] * late, *started(), *done()]

    def test_a_start_in_time_is_as_promised(self) -> None:
        assert found(self.story(), self.INVENTORY) == ""
        assert found(self.story(late=4), self.INVENTORY) == ""  # a manager takes its time

    def test_a_later_one_is_found(self) -> None:
        (finding,) = findings(self.story(late=20), self.INVENTORY)
        assert finding.kind == "reservation"
        assert "job j starts 21.0 s later than event 16 reserved" in finding.text

    def test_whoever_overruns_what_it_said_excuses_it(self) -> None:
        short = replace(
            self.INVENTORY, jobs=self.INVENTORY.jobs | {"k": replace(self.INVENTORY.jobs["k"], expected_s=5)}
        )
        assert found(self.story(late=20), short) == ""
        unknown = replace(self.INVENTORY, jobs={"j": self.INVENTORY.jobs["j"]})
        assert found(self.story(late=20), unknown) == ""

    def test_whoever_says_nothing_does_not(self) -> None:
        endless = replace(
            self.INVENTORY, jobs=self.INVENTORY.jobs | {"k": replace(self.INVENTORY.jobs["k"], expected_s=None)}
        )
        assert "reserved" in found(self.story(late=20), endless)

    def test_a_change_of_the_cluster_excuses_it(self) -> None:
        assert found(self.story(node("c", "joined"), late=20), self.INVENTORY) == ""
        before = [node("c", "joined"), *self.story(start_at="2026-01-01T00:00:20+00:00", late=20)]
        assert "reserved" in found(before, self.INVENTORY)


def revised(cause: str, bandwidth: int, number: int = 1) -> Fact:
    """The flow of job j, as it is now."""
    flow = {"number": number, "src": "t-0", "dst": "t-1", "min": 1, "max": 99, "path": ["a", "b"]}
    data = {"revision": f"r{cause}{bandwidth}", "job": "j", "attempt": 1, "cause": cause}
    short = [{"src": "t-0", "dst": "t-1", "min": 1, "rate": 0}] if not bandwidth else []
    return "plan.revised", data | {"flows": [flow | {"rate": bandwidth}], "short": short}


RUNS = [*START, *started()]


SUSPENDED = [*RUNS, revised("suspended", 0), job("suspended", "running")]


def test_a_suspension_excuses_promises_made_before_it_and_none_made_after() -> None:
    ends = {"j": replace(INVENTORY.jobs["j"], expected_s=600), "k": asked((600, 10, 0), (600, 10, 0))}
    inventory = replace(INVENTORY, jobs=ends)
    queued = job("queued", None, name="k")
    promised = waiting("2026-01-01T00:00:02+00:00", "k")
    late = [*started(name="k", number=2, rate=1), *done(name="k")]
    gone = [job("cancelled", "suspended"), *(allocation(i, "lost", "running") for i in (0, 1))]
    before = [*RUNS, queued, promised, *SUSPENDED[len(RUNS) :], *gone, *late]
    assert "reserved" not in found(before, inventory)
    after = [*SUSPENDED, queued, promised, *gone, *late]
    assert "job k starts" in found(after, inventory)
