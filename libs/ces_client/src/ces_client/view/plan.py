"""Plans as tables: what flows asked for, were given and carry; and how a plan came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ces_client.view.deadline import end_text
from ces_client.view.formats import DASH, number, path_text, rate, rate_range
from ces_client.view.queue_status import forecast_text, lack_text, reason_text, reservable_share
from ces_client.view.requests import Measured, request_times
from ces_client.view.tables import plain_table
from ces_common.jobfile import JobFile
from ces_common.messages.api import FlowView, PlanForecast, PlanView
from ces_common.messages.events import Lack
from ces_common.messages.plans import PolicyAdvice
from ces_common.messages.request_times import RequestTime
from ces_common.names import node_end
from ces_common.quantities import show_cpu

METRICS = {
    "composite": "quality (composite)",
    "load_imbalance": "load imbalance (0 is even)",
    "power_change_w": "watts more (modelled)",
}
OF_GOALS = {"time_score": 1.0, "power_change_w": 0.0, "energy_score": 1.0, "reliability": 1.0, "move_cost": 0.0}
"""Metrics of applications that are left out where they say nothing."""
Lacking = dict[str, dict[str, list[Lack]]]
"""Task -> node -> what it has too little of."""
LACKING = TypeAdapter(Lacking)
REQUESTS = TypeAdapter(list[RequestTime])
DATA = "(data)"  # in place of a task's name: a node's data is sent by no task


def flow_table(nodes: dict[str, str | None], flows: Sequence[FlowView], *, measured: bool = True) -> Table:
    """A row for each flow, with its sending task and that task's node. Tasks that send nothing have a row, too; nodes
    whose data is read come last. ``nodes``: task -> node, None without one; ``measured``: with a column for what flows
    carry, which a dry run lacks."""
    columns = ["TASK", "NODE", "FLOW", "PATH", "ASKED", "RATE"] + (["MEASURED"] if measured else [])
    table = plain_table(*columns, right=("ASKED", "RATE", "MEASURED"), wrapped=("PATH",), optional=("ASKED", "PATH"))
    sources = {flow.src: node_end(flow.src) for flow in flows if node_end(flow.src) is not None}
    for task, node in {**nodes, **sources}.items():
        sent = [flow for flow in flows if flow.src == task]
        for index, flow in enumerate(sent):
            head = (DATA if task in sources else task, node or DASH) if index == 0 else ("", "")
            table.add_row(*head, *_flow_cells(flow, measured))
        if not sent:
            table.add_row(task, node or DASH, *[DASH] * (len(columns) - 2))
    return table


def _flow_cells(flow: FlowView, measured: bool) -> list[RenderableType]:
    cells: list[RenderableType] = [f"→ {flow.dst}", path_text(flow.path), rate_range(flow.min, flow.max)]
    given = Text(rate(flow.rate))
    if flow.rate is not None and not flow.enforced and measured:
        given.append("*", style="yellow")
    return [*cells, given, _measured(flow)] if measured else [*cells, given]


def _measured(flow: FlowView) -> Text:
    if len(flow.path) == 1:
        return Text("no link", style="dim")
    if flow.measured is not None:
        return Text(rate(flow.measured), style="bold")
    return Text(DASH)


def unenforced_note(flows: Sequence[FlowView]) -> Text | None:
    """What the star in a flow table means; None where nothing bears one."""
    if all(flow.enforced or flow.rate is None for flow in flows):
        return None
    return Text("* planned, but not enforced: a node on the path cannot shape traffic (network none)", style="yellow")


def metrics_text(metrics: dict[str, float], bound: float | None = None) -> str:
    """``quality 0.93 of at most 0.95``, and so on. ``bound``: no plan has a higher composite, or objective where there
    is one."""
    told = {name: value for name, value in metrics.items() if name not in OF_GOALS or value != OF_GOALS[name]}
    shown = {name: f"{METRICS.get(name, name.replace('_', ' '))} {value:.4g}" for name, value in told.items()}
    bounded = "objective" if "objective" in metrics else "composite"
    if bound is not None and bounded in metrics:
        shown[bounded] += f" of at most {bound:.4g}"
    return "  ".join(shown.values())


def plan_answer(job: JobFile, answer: PlanForecast, now: datetime) -> RenderableType:
    """A dry run: the plan that the job would get, or why it gets none now, and when it would start."""
    decided = f"decided by {answer.solver} in {answer.decision_ms:.1f} ms, for version {answer.version} of the cluster"
    foot = Text(decided, style="dim")
    if answer.fallback is not None:
        foot.append_text(Text(f"\n{answer.fallback}", style="yellow"))
    if not answer.feasible:
        parts: list[RenderableType] = [Text.from_markup(f"[bold red]no place[/] for {escape(job.name)}")]
        if answer.reason is not None:
            share = "" if answer.reason.forever else reservable_share(answer.reason)
            parts.append(reason_text(answer.reason).append(share))
        forecast = forecast_text(answer, now)
        if forecast is not None:
            parts.append(forecast)
        if (ends := end_text(answer, now)) is not None:
            parts.append(Text(ends))
        if answer.refused:
            parts += [Text(), _refused_table(answer.refused, answer.lacking)]
        return Group(*parts, Text(), foot)
    given = {(flow.src, flow.dst): flow for flow in answer.flows}
    flows = []
    start = ""
    if job.elastic is not None and answer.size is not None:
        start = f" and would start with {answer.size} {job.elastic.group}"
        if answer.cpu is not None:
            start += f" with {show_cpu(answer.cpu)} each"
        job = job.at_size(answer.size)
    for flow in job.expand_flows():
        got = given.get((flow.src, flow.dst))
        asked = FlowView(src=flow.src, dst=flow.dst, min=flow.min, max=flow.max)
        flows.append(asked.model_copy(update={"rate": got.rate, "path": got.path}) if got else asked)
    nodes = {task.name: answer.assignments.get(task.name) for task in job.expand_tasks()}
    head = Text.from_markup(
        f"[bold green]{escape(job.name)} has a place{escape(start)}[/]  {metrics_text(answer.metrics, answer.bound)}"
    )
    ends = end_text(answer, now)
    by: list[RenderableType] = [] if ends is None else [Text(ends)]
    times: list[RenderableType] = [Text(), request_times(answer.requests)] if answer.requests else []
    elsewhere: list[RenderableType] = [Text(), _refused_table(answer.refused, answer.lacking)] if answer.refused else []
    policy: list[RenderableType] = [Text(), *_by_policy(answer.policy, answer.assignments)] if answer.policy else []
    table = flow_table(nodes, flows, measured=False)
    return Group(head, *by, Text(), table, *times, *policy, *elsewhere, Text(), foot)


def _by_policy(policy: PolicyAdvice, assignments: dict[str, str]) -> list[RenderableType]:
    """How sure the policy was of each task's node."""
    table = plain_table("TASK", "NODE", "PROBABILITY", right=("PROBABILITY",))
    for task, probability in policy.probabilities.items():
        table.add_row(task, assignments.get(task, DASH), f"{probability:.4f}")
    return [Text(f"policy {policy.version}"), table]


def _refused_table(refused: dict[str, dict[str, str]], lacking: Lacking) -> Table:
    """Tasks, nodes, why not, with amounts where they are known; tasks with the same refusals share a row, and nodes
    with the same reason."""
    table = plain_table("TASKS", "NODES", "WHY NOT", wrapped=("TASKS", "NODES", "WHY NOT"))
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for task, nodes in refused.items():
        short = {node: "; ".join(map(lack_text, lacks)) for node, lacks in lacking.get(task, {}).items() if lacks}
        alike.setdefault(tuple((node, short.get(node, why)) for node, why in nodes.items()), []).append(task)
    for refusals, tasks in alike.items():
        by_reason: dict[str, list[str]] = {}
        for node, why in refusals:
            by_reason.setdefault(why, []).append(node)
        for index, (why, names) in enumerate(by_reason.items()):
            table.add_row(", ".join(tasks) if index == 0 else "", ", ".join(names), why)
    return table


def committed_plan(plan: PlanView, age: str, measured: Mapping[str, Measured] | None = None) -> RenderableType:
    """How a committed plan came about: solver, metrics, requests, seed, refused nodes. ``age``: since then, such as
    ``3m``; ``measured``: what requests take, by class."""
    head = Text(f"decided by {plan.solver}")
    considered = dict(plan.considered)
    decision_ms, refused = considered.pop("decision_ms", None), considered.pop("refused", None)
    lacking = _lacking(considered.pop("lacking", None))
    bound, fallback = considered.pop("bound", None), considered.pop("fallback", None)
    policy, requests = _advice(considered.pop("policy", None)), _requests(considered.pop("requests", None))
    sparing = considered.pop("sparing", None)
    seed, limit_s = considered.pop("seed", None), considered.pop("time_limit_s", None)
    if (took_ms := number(decision_ms)) is not None:
        head.append(f" in {took_ms:.1f} ms")
    head.append(f", committed {age} ago (attempt {plan.attempt}, for version {plan.version} of the cluster)")
    parts: list[RenderableType] = [head, Text(metrics_text(plan.metrics, bound if isinstance(bound, float) else None))]
    if sparing is True:
        parts.append(
            Text("the cluster was crowded: the place was chosen to leave free capacity for later jobs", style="dim")
        )
    if isinstance(fallback, str):
        parts.append(Text(fallback, style="yellow"))
    if requests:
        parts += [Text(), request_times(requests, measured or {})]
    if policy is not None:
        parts += [Text(), *_by_policy(policy, plan.assignments)]
    if refused:
        parts += [Text(), _refused_table(refused, lacking)]
    if seed is not None:
        within_s = number(limit_s)
        limit = "" if within_s is None else f"stopped after {within_s:g} s at the latest; "
        parts.append(Text(f"{limit}seed {seed}: the same seed gives the same plan", style="dim"))
    if considered:
        parts += [Text(), _tree("other details", considered)]
    return Group(*parts)


def _lacking(kept: Any) -> Lacking:
    try:
        return LACKING.validate_python(kept)
    except ValidationError:  # none, or kept by another version of the scheduler
        return {}


def _requests(kept: Any) -> list[RequestTime]:
    try:
        return REQUESTS.validate_python(kept)
    except ValidationError:  # none, or kept by another version of the scheduler
        return []


def _advice(kept: Any) -> PolicyAdvice | None:
    try:
        return PolicyAdvice.model_validate(kept)
    except ValidationError:  # none, or kept by another version of the scheduler
        return None


def _tree(name: str, value: Any) -> Tree:
    tree = Tree(Text(name), guide_style="dim")
    _grow(tree, value)
    return tree


def _grow(tree: Tree, value: Any) -> None:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    for key, inner in items:
        if isinstance(inner, dict | list) and inner:
            _grow(tree.add(Text(str(key))), inner)
        else:
            tree.add(Text(f"{key}: {f'{inner:.4g}' if isinstance(inner, float) else inner}"))
