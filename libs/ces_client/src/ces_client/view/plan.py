"""Plans as tables: what was asked of the network, what was given, what is measured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ces_client.view.standing import forecast_text, reason_text
from ces_client.view.words import DASH, path_text, rate, rate_range
from ces_common.jobfile import JobFile
from ces_common.messages.api import FlowView, PlanForecast, PlanView
from ces_common.messages.events import PolicyAdvice
from ces_common.naming import node_end

DATA = "(data)"  # in place of a task's name: a node's data is sent by no task


class _PlainTable(Table):
    """Cells are taken as they are: what looks like markup in a user's text is text."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        super().add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells), **options)


def plain_table(*columns: str, right: Sequence[str] = ()) -> Table:
    """The look that all of our tables share; the columns in ``right`` hold numbers."""
    table = _PlainTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def flow_table(nodes: dict[str, str | None], flows: Sequence[FlowView], *, measured: bool = True) -> Table:
    """A row for each flow beside its sending task and that task's node; tasks that send nothing come too. Last come
    nodes whose data is read."""
    columns = ["TASK", "NODE", "FLOW", "PATH", "ASKED", "GIVEN"] + (["MEASURED"] if measured else [])
    table = plain_table(*columns, right=("ASKED", "GIVEN", "MEASURED"))
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
    given = Text(rate(flow.bandwidth))
    if flow.bandwidth is not None and not flow.enforced and measured:
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
    if all(flow.enforced or flow.bandwidth is None for flow in flows):
        return None
    return Text("* planned, but not enforced: a node on the path cannot shape traffic (network none)", style="yellow")


def metrics_text(metrics: dict[str, float], bound: float | None = None) -> str:
    """``bound``: what no plan's composite exceeds."""
    shown = {name: f"{name.replace('_', ' ')} {value:.4g}" for name, value in metrics.items()}
    if bound is not None and "composite" in metrics:
        shown["composite"] += f" (at most {bound:.4g})"
    return "  ".join(shown.values())


def plan_answer(job: JobFile, answer: PlanForecast, now: datetime) -> RenderableType:
    """A dry run: the plan that the job would get, or why it gets none now, and when it would start."""
    foot = Text(f"solver {answer.solver}, {answer.decision_ms:.1f} ms, snapshot {answer.version}", style="dim")
    if answer.fallback is not None:
        foot.append_text(Text(f"\n{answer.fallback}", style="yellow"))
    if not answer.feasible:
        parts: list[RenderableType] = [Text.from_markup(f"[bold red]no place[/] for {escape(job.name)}")]
        if answer.reason is not None:
            parts.append(reason_text(answer.reason))
        forecast = forecast_text(answer, now)
        if forecast is not None:
            parts.append(forecast)
        if answer.refused:
            parts += [Text(), _refused_table(answer.refused)]
        return Group(*parts, Text(), foot)
    given = {(flow.src, flow.dst): flow for flow in answer.flows}
    flows = []
    for flow in job.expand_flows():
        got = given.get((flow.src, flow.dst))
        asked = FlowView(src=flow.src, dst=flow.dst, min=flow.min, max=flow.max)
        flows.append(asked.model_copy(update={"bandwidth": got.bandwidth, "path": got.path}) if got else asked)
    nodes = {task.name: answer.assignments.get(task.name) for task in job.expand_tasks()}
    head = Text.from_markup(
        f"[bold green]{escape(job.name)} has a place[/]  {metrics_text(answer.metrics, answer.bound)}"
    )
    elsewhere: list[RenderableType] = [Text(), _refused_table(answer.refused)] if answer.refused else []
    policy: list[RenderableType] = [Text(), *_by_policy(answer.policy, answer.assignments)] if answer.policy else []
    return Group(head, Text(), flow_table(nodes, flows, measured=False), *policy, *elsewhere, Text(), foot)


def _by_policy(policy: PolicyAdvice, assignments: dict[str, str]) -> list[RenderableType]:
    """How sure the policy was of each task's node."""
    table = plain_table("TASK", "NODE", "PROBABILITY", right=("PROBABILITY",))
    for task, probability in policy.probabilities.items():
        table.add_row(task, assignments.get(task, DASH), f"{probability:.4f}")
    return [Text(f"policy {policy.version}"), table]


def _refused_table(refused: dict[str, dict[str, str]]) -> Table:
    """Tasks, nodes, why not; tasks with the same refusals share a row, and nodes with the same reason."""
    table = plain_table("TASKS", "NODES", "WHY NOT")
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for task, nodes in refused.items():
        alike.setdefault(tuple(nodes.items()), []).append(task)
    for refusals, tasks in alike.items():
        by_reason: dict[str, list[str]] = {}
        for node, why in refusals:
            by_reason.setdefault(why, []).append(node)
        for index, (why, names) in enumerate(by_reason.items()):
            table.add_row(", ".join(tasks) if index == 0 else "", ", ".join(names), why)
    return table


def committed_plan(plan: PlanView, now_text: str) -> RenderableType:
    """How a committed plan came about."""
    head = Text(f"{plan.solver}, attempt {plan.attempt}, snapshot {plan.version}, committed {now_text} ago")
    considered = dict(plan.considered)
    decision_ms, refused = considered.pop("decision_ms", None), considered.pop("refused", None)
    bound, fallback = considered.pop("bound", None), considered.pop("fallback", None)
    policy = _advice(considered.pop("policy", None))
    sparing = considered.pop("sparing", None)
    if isinstance(decision_ms, int | float):
        head.append(f", decided in {decision_ms:.1f} ms")
    parts: list[RenderableType] = [head, Text(metrics_text(plan.metrics, bound if isinstance(bound, float) else None))]
    if sparing is True:
        parts.append(Text("the cluster was crowded: a place was chosen that leaves room for later jobs", style="dim"))
    if isinstance(fallback, str):
        parts.append(Text(fallback, style="yellow"))
    if policy is not None:
        parts += [Text(), *_by_policy(policy, plan.assignments)]
    if refused:
        parts += [Text(), _refused_table(refused)]
    if considered:
        parts += [Text(), _tree("considered", considered)]
    return Group(*parts)


def _advice(kept: Any) -> PolicyAdvice | None:
    try:
        return PolicyAdvice.model_validate(kept)
    except ValidationError:  # none, or kept by a scheduler of other ways
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
