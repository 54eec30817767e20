"""The SDK: one class for the manager's REST API, with the models that the API answers with."""

from __future__ import annotations

import os
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Self

import httpx
from pydantic import BaseModel

from ces_client import stream
from ces_client.applicants import Applicants
from ces_client.context import Context, load_context
from ces_client.energy import Energies
from ces_client.http import ANSWER_S, PATIENCE_S, Http, host_of
from ces_client.notebook import shown, tables
from ces_client.notebook.shown import ClusterMap, Listing
from ces_client.policies import Policies
from ces_client.profiles import Profiles
from ces_client.published_audits import Audits
from ces_client.regions import Regions
from ces_client.resource import MOST
from ces_client.resource import Resource as _Resource
from ces_client.resource import path_of as _path
from ces_client.secrets import Secrets
from ces_client.sessions import Sessions
from ces_client.stream import StreamEvent, newline_split
from ces_client.trust import check_encrypted, says_insecure
from ces_client.watch import ended, watch
from ces_common.jobfile import JobFile
from ces_common.messages.adjustments import MOST_MOVES, AdjustmentProposal
from ces_common.messages.api import (
    JobFlowsView,
    JobSummary,
    JobView,
    LinkProbeView,
    LinkView,
    NodeView,
    PlanForecast,
    PlanView,
    QueueEntry,
    QueuePage,
    TopologyFile,
    TopologyView,
)
from ces_common.messages.dashboard import HeldFlow, Layout, UsageSamples
from ces_common.messages.drains import DrainForecast
from ces_common.messages.identities import MAX_PRIORITY, USUAL_S, AccessTokenView, Identity, NewAccessToken, SessionCode
from ces_common.messages.membership import ForgottenNode, JoinToken, JoinTokenRequest
from ces_common.messages.traces import JobTrace
from ces_common.roles import Role
from ces_common.states import JOB_OVER


class Jobs(_Resource):
    """Jobs by id."""

    def submit(self, job: JobFile | Mapping[str, Any], *, idempotency_key: str | None = None) -> JobView:
        """Submits a job. A lost answer is requested again under the same key, so that only one job is made."""
        body = _body(job) if isinstance(job, JobFile) else dict(job)
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return self._read(shown.JobView, self._http.request("POST", "jobs", body=body, headers=headers))

    def get(self, job: str) -> JobView:
        return self._read(shown.JobView, self._http.request("GET", _path("jobs", job)))

    def list(self, *, name: str | None = None) -> Iterator[JobSummary]:
        """All jobs, or those of a name; pages are fetched as they are needed."""
        return Listing(lambda: self._items(JobSummary, "jobs", {"name": name} if name else None), tables.jobs)

    def latest(self, name: str) -> JobSummary | None:
        """The job of this name that was submitted last."""
        return max(self.list(name=name), key=lambda job: job.submitted_at, default=None)

    def plan(self, job: str) -> PlanView:
        """The committed plan; ApiError 404 while there is none."""
        return self._read(shown.PlanView, self._http.request("GET", _path("jobs", job, "plan")))

    def flows(self, job: str, *, since: datetime | None = None) -> JobFlowsView:
        """What the job's flows asked for, were given and carried, link by link: in the last minute, or from ``since``
        on (with a time zone; the manager remembers five minutes)."""
        params = {"since": since.isoformat()} if since else None
        return self._read(shown.JobFlowsView, self._http.request("GET", _path("jobs", job, "flows"), params=params))

    def trace(self, job: str, *, attempt: int | None = None) -> JobTrace:
        """Where the time of an attempt went, until it ran: of the present one if none is named."""
        params = {"attempt": str(attempt)} if attempt is not None else None
        return self._read(JobTrace, self._http.request("GET", _path("jobs", job, "trace"), params=params))

    def cancel(self, job: str) -> JobView:
        return self._read(shown.JobView, self._http.request("DELETE", _path("jobs", job)))

    def pause(self, job: str) -> JobView:
        return self._read(shown.JobView, self._http.request("POST", _path("jobs", job, "pause")))

    def resume(self, job: str) -> JobView:
        return self._read(shown.JobView, self._http.request("POST", _path("jobs", job, "resume")))

    def move(self, job: str, task: str, *, to: str) -> JobView:
        """Move one task of a running job to the node ``to``; its ``move`` tells how far that is."""
        body = {"task": task, "to": to}
        return self._read(shown.JobView, self._http.request("POST", _path("jobs", job, "moves"), body=body))

    def place_user(
        self, job: str, user: str, *, node: str | None = None, lat: float | None = None, lon: float | None = None
    ) -> JobView:
        """Say where a user of an application is now: at a ``node``, or at a position in degrees."""
        at = {"node": node} if node is not None else {"lat": lat, "lon": lon}
        return self._read(shown.JobView, self._http.request("PUT", _path("jobs", job, "users", user), body={"at": at}))

    def adjustment(self, job: str, *, moves: int = MOST_MOVES) -> AdjustmentProposal:
        """What would be changed of a running job with goals, with at most so many moves of tasks."""
        params = {"moves": str(moves)}
        return self._read(
            AdjustmentProposal, self._http.request("GET", _path("jobs", job, "adjustment"), params=params)
        )

    def logs(
        self, job: str, task: str | None = None, *, follow: bool = False, tail: int | None = None
    ) -> Iterator[str]:
        """The lines of a task's log; of all tasks, each after ``TASK | ``, when none is named. ``tail``: only the
        last N lines of each task, and with ``follow`` what comes after them."""
        params = {"follow": "true" if follow else "false"} | ({"task": task} if task else {})
        if tail is not None:
            params["tail"] = str(tail)
        try:
            with self._http.stream(_path("jobs", job, "logs"), params=params) as response:
                yield from newline_split(response)
        except httpx.TransportError as error:
            raise self._http.unreachable(error) from error

    def last_log_lines(self, job: str, task: str, *, count: int, within_s: float) -> tuple[str, ...]:
        """The last lines of a task's log, ``count`` at most; none where it takes longer to read it."""
        last: deque[str] = deque(maxlen=count)
        until = time.monotonic() + within_s
        try:
            params = {"follow": "false", "task": task}
            opened = self._http.stream(_path("jobs", job, "logs"), params=params, read_s=within_s, patience_s=within_s)
            with opened as response:
                for line in newline_split(response):
                    last.append(line)
                    if time.monotonic() > until:
                        return ()
        except httpx.TransportError as error:
            raise self._http.unreachable(error) from error
        return tuple(last)

    def events(self, job: str, *, after: int = 0) -> Iterator[StreamEvent]:
        """The job's events later than number ``after``, then those to come, until the job is over."""
        return stream.follow(self._http, _path("jobs", job, "events"), after=after, until_job_ends=True)

    def events_so_far(self, job: str, *, after: int = 0) -> Iterator[StreamEvent]:
        return stream.so_far(self._http, _path("jobs", job, "events"), after=after)

    def watch(self, job: str) -> Iterator[JobView]:
        """The job now, then at least every half second until it and its workers have ended."""
        return watch(self, job)

    def wait(self, job: str, timeout: float | None = None) -> JobView:
        """The job once it and its workers have ended. Raises TimeoutError after ``timeout`` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for view in self.watch(job):
            if ended(view):
                return view
            if deadline is not None and time.monotonic() >= deadline:
                state = f"stopping ({view.state})" if view.state in JOB_OVER else view.state
                raise TimeoutError(f"job {job} is still {state} after {timeout:g} s")
        raise AssertionError("a watch ends with the job's end")


class Nodes(_Resource):
    def get(self, node: str) -> NodeView:
        return self._read(NodeView, self._http.request("GET", _path("nodes", node)))

    def list(self) -> Iterator[NodeView]:
        return Listing(lambda: self._items(shown.NodeView, "nodes"), tables.nodes)

    def samples(self, node: str) -> UsageSamples:
        """The ``cpu`` and ``memory`` that it used in the last hour, as means of some seconds each. The manager keeps
        them in memory: one that has just started knows little."""
        return self._read(UsageSamples, self._http.request("GET", "samples", params={"node": node}))

    def cordon(self, node: str) -> NodeView:
        """No new tasks go there; those that run stay."""
        return self._read(shown.NodeView, self._http.request("POST", _path("nodes", node, "cordon")))

    def uncordon(self, node: str) -> NodeView:
        return self._read(shown.NodeView, self._http.request("POST", _path("nodes", node, "uncordon")))

    def drain(self, node: str) -> NodeView:
        """Cordon it, and have its jobs rescheduled elsewhere."""
        return self._read(shown.NodeView, self._http.request("POST", _path("nodes", node, "drain")))

    def drain_forecast(self, node: str) -> DrainForecast:
        """What a drain would hit, and whether there are other places for it; nothing is changed."""
        params = {"dry_run": "true"}
        return self._read(DrainForecast, self._http.request("POST", _path("nodes", node, "drain"), params=params))

    def reclaim(self, node: str) -> NodeView:
        """Have the device of a lent node given back to its owner, until it is lent again."""
        return self._read(shown.NodeView, self._http.request("POST", _path("nodes", node, "reclaim")))

    def lend(self, node: str) -> NodeView:
        """Have it lent again, now."""
        return self._read(shown.NodeView, self._http.request("POST", _path("nodes", node, "lend")))

    def set_calendar(self, node: str, times: str, *, zone: str = "UTC") -> NodeView:
        """Say when its owner usually needs it, like ``Mon-Fri 08:00-18:00``, by the clocks of that time zone."""
        body = {"times": times, "zone": zone}
        return self._read(shown.NodeView, self._http.request("PUT", _path("nodes", node, "calendar"), body=body))

    def clear_calendar(self, node: str) -> NodeView:
        """Forget when its owner usually needs it."""
        return self._read(shown.NodeView, self._http.request("DELETE", _path("nodes", node, "calendar")))

    def rotate_key(self, node: str) -> NodeView:
        """Have it replace the key by which its links are encrypted, without losing a connection."""
        return self._read(shown.NodeView, self._http.request("POST", _path("nodes", node, "rotate-key")))

    def measure(self, node: str) -> NodeView:
        """Have its agent measure again how fast it is, which takes 15 seconds at most; until then the former scores
        stand."""
        return self._read(shown.NodeView, self._http.request("POST", _path("nodes", node, "measure")))

    def forget(self, node: str) -> ForgottenNode:
        """Remove a node that is lost, or drained and empty, for good."""
        # A repetition would find no such node, whatever became of the first.
        response = self._http.request("POST", _path("nodes", node, "forget"), repeatable=False)
        return self._read(ForgottenNode, response)

    def create_token(self, node: str | None = None, *, ttl_s: int = 3600) -> JoinToken:
        """A token with which one node may join once; only ``node`` if given."""
        body = JoinTokenRequest(node=node, ttl_s=ttl_s).model_dump(mode="json", exclude_none=True)
        # A repetition would leave a second valid token behind.
        return self._read(JoinToken, self._http.request("POST", "nodes/tokens", body=body, repeatable=False))


class Topology(_Resource):
    def get(self) -> TopologyView:
        return self._read(shown.TopologyView, self._http.request("GET", "topology"))

    def put(self, topology: TopologyFile) -> TopologyView:
        """Replaces all links and media."""
        return self._read(shown.TopologyView, self._http.request("PUT", "topology", body=_body(topology)))

    def layout(self) -> Layout:
        """Where operators put nodes on the map."""
        return self._read(Layout, self._http.request("GET", "layout"))

    def map(self) -> ClusterMap:
        """The topology with what operators said of where its nodes lie, for a notebook to draw."""
        return ClusterMap(self.get(), self.layout())

    def links(self) -> Iterator[LinkView]:
        return Listing(lambda: self._items(LinkView, "links"), tables.links)

    def samples(self, src: str, dst: str) -> UsageSamples:
        """What of a link was ``used`` in the last hour, in bit/s (see ``Nodes.samples``)."""
        return self._read(UsageSamples, self._http.request("GET", "samples", params={"link": f"{src}>{dst}"}))

    def link(self, src: str, dst: str) -> LinkView:
        return self._read(LinkView, self._http.request("GET", _path("links", src, dst)))

    def probe(self, src: str, dst: str, *, seconds: float = 1.0) -> LinkProbeView:
        """Fills the idle part of a link for a moment (0.2 to 5 s), to measure what it carries."""
        path, body = _path("links", src, dst, "probe"), {"seconds": seconds}
        return self._read(LinkProbeView, self._http.request("POST", path, body=body, repeatable=False))


class Tokens(_Resource):
    """Access tokens by name."""

    def create(
        self,
        name: str,
        role: Role,
        *,
        tenants: Sequence[str] = (),
        max_priority: int = MAX_PRIORITY,
        lasts_s: int = USUAL_S,
    ) -> NewAccessToken:
        """A token that is shown only here. ``tenants``: whose jobs a viewer or submitter sees."""
        body = {"name": name, "role": role, "tenants": list(tenants), "max_priority": max_priority, "lasts": lasts_s}
        # A repetition would find the name taken, whatever became of the first.
        return self._read(NewAccessToken, self._http.request("POST", "tokens", body=body, repeatable=False))

    def list(self) -> Iterator[AccessTokenView]:
        return self._items(AccessTokenView, "tokens")

    def revoke(self, name: str) -> AccessTokenView:
        """Refuse it from now on."""
        return self._read(AccessTokenView, self._http.request("DELETE", _path("tokens", name)))


class Client(_Resource):
    """The manager at ``url``. ``verify``: False, True or the path of a CA file. ``insecure``: go to another machine in
    the clear, where whoever is on the way can read the token, inside a VPN, say; ``CES_INSECURE=true`` says the same.
    ``patience_s``: for how long a request
    that does no harm twice is repeated while the manager does not answer. A context manager; else close it.

    Raises BadInput where it must not be made like this. Every method raises ApiError where the manager refuses,
    Unreachable where it does not answer.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        verify: bool | str = True,
        transport: httpx.BaseTransport | None = None,
        patience_s: float = PATIENCE_S,
        answer_s: float = ANSWER_S,
        insecure: bool = False,
    ) -> None:
        host_of(url)
        check_encrypted(url, insecure or says_insecure(os.environ), "use https://, or insecure=True inside a VPN")
        super().__init__(Http(url, token, verify, transport, patience_s, answer_s))
        self.url = self._http.url
        self.jobs = Jobs(self._http)
        self.nodes = Nodes(self._http)
        self.applicants = Applicants(self._http)
        self.topology, self.tokens = Topology(self._http), Tokens(self._http)
        self.regions = Regions(self._http)
        self.secrets, self.sessions = Secrets(self._http), Sessions(self._http)
        self.audits = Audits(self._http)
        self.energy, self.profiles, self.policy = Energies(self._http), Profiles(self._http), Policies(self._http)

    @classmethod
    def from_context(cls, context: Context, *, patience_s: float = PATIENCE_S, answer_s: float = ANSWER_S) -> Self:
        """Of one that ``load_context`` has returned: its URL was looked at when it was saved or read."""
        verify = context.ca or True
        return cls(context.url, context.token, verify=verify, patience_s=patience_s, answer_s=answer_s, insecure=True)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The manager that ``CES_URL`` or the context file names. Raises BadInput where neither does."""
        return cls.from_context(load_context(environment))

    def whoami(self) -> Identity:
        """Whose token is sent, and what it allows."""
        return self._read(Identity, self._http.request("GET", "whoami"))

    def dashboard_code(self) -> SessionCode:
        """What begins a session of the dashboard, once and within a minute, with the rights of this token."""
        return self._read(SessionCode, self._http.request("POST", "sessions/codes"))

    def end_session(self, code: SessionCode) -> None:
        """Have the session that began with this code, or the code, refused from now on. Raises ApiError where it has
        ended already."""
        self._http.request("DELETE", _path("sessions", code.code.split("_")[2]))

    def queue(self, *, on_remark: Callable[[str], None] | None = None) -> Iterator[QueueEntry]:
        """Waiting jobs, the next one first. ``on_remark`` is told why the order is not the scheduler's own, if it is
        not."""
        for page in self._pages(QueuePage, "queue", {"limit": MOST}):
            if page.remark is not None and on_remark is not None:
                on_remark(page.remark)
            yield from page.items

    def plan(self, job: JobFile) -> PlanForecast:
        """A dry run: the plan that a job would get now, or why there is none."""
        return self._read(shown.PlanForecast, self._http.request("POST", "plans", body=_body(job))).about(job)

    def flows(
        self, *, link: tuple[str, str] | None = None, node: str | None = None, short: bool = False
    ) -> Iterator[HeldFlow]:
        """Flows of all jobs that reserve bandwidth now: asked, given and carried. ``link``: over this one (source,
        destination); ``node``: by way of it; ``short``: only those whose link carries less than it should."""
        asked = {"link": None if link is None else ">".join(link), "node": node, "state": "short" if short else None}
        query = {key: value for key, value in asked.items() if value is not None} | {"limit": MOST}
        return Listing(lambda: self._items(HeldFlow, "flows", query), tables.flows)

    def events(self, *, after: int = 0) -> Iterator[StreamEvent]:
        """Everybody's events later than number ``after``, then those to come, without end."""
        return stream.follow(self._http, "events", after=after, until_job_ends=False)

    def events_so_far(self, *, after: int = 0) -> Iterator[StreamEvent]:
        return stream.so_far(self._http, "events", after=after)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _body(document: BaseModel) -> dict[str, Any]:
    """The fields that the user wrote; defaults are left to the manager."""
    return document.model_dump(mode="json", exclude_unset=True)
