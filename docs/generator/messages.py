"""Everything that services say to each other, from the models and subjects."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

from ces_common import subjects
from ces_common.messages import (
    adjustments,
    agent_queries,
    checkpoints,
    confinement,
    decompositions,
    desired,
    events,
    identities,
    moves,
    plans,
    policies,
    queries,
    records,
    reports,
    scores,
    secrets,
    traces,
    users,
)
from ces_common.messages.base import Message
from ces_common.natsauth.permissions import PERMISSIONS
from ces_common.sign_of_life import SUBJECT
from ces_compute_ctl.service import EVENTS as COMPUTE_HEARS
from ces_federation.service import EVENTS as FEDERATION_HEARS
from ces_manager.messaging.handlers import FACTS as MANAGER_HEARS
from ces_manager.messaging.peers import MEASURED, NEWS
from ces_network_ctl.service import EVENTS as NETWORK_HEARS
from ces_scheduler.service import EVENTS as SCHEDULER_HEARS
from generator.markdown import anchor, code, default_text, docstring, remarks, table, type_text

HEARS = {
    "manager": [subject for queue in MANAGER_HEARS.values() for subject in queue],
    "scheduler": SCHEDULER_HEARS,
    "compute-ctl": COMPUTE_HEARS,
    "network-ctl": NETWORK_HEARS,
    "federation": FEDERATION_HEARS,
}
NODE, ID = "NODE", "ID"
MARKS = {NODE: "<node>", ID: "<id>"}

HEAD = """# Messages

Generated from `ces_common.messages`, `ces_common.subjects` and `ces_common.natsauth.permissions` by `make docs`; do not
edit. What they are for: [state and messages](../state.md#messages). Unknown fields are ignored by every reader, and
fields without a value are left out.
"""


def page() -> str:
    parts = [HEAD, _facts(), _desired(), _reports(), _queries(), _models()]
    return "\n".join(parts)


def _facts() -> str:
    envelope = _fields(events.CloudEvent)
    rows = []
    for (aggregate, kind), model in events.EVENTS.items():
        subject = subjects.event(aggregate, kind, ID)
        hearers = [name for name, patterns in HEARS.items() if _heard(patterns, subject)]
        rows.append((_subject(subject), _writer(subject), ", ".join(hearers), _link(model)))
    return (
        "## Facts\n\nCloudEvents 1.0 in structured JSON on the stream `" + subjects.EVENT_STREAM + "`, of type "
        "`ces.v1.<aggregate>.<type>`. The manager's own are numbered (`sequence`); `<id>` is the aggregate's.\n\n"
        + table(("subject", "written by", "wakes", "data"), rows)
        + "\n\n### CloudEvent\n\n"
        + docstring(events.CloudEvent)
        + "\n\n"
        + envelope
        + "\n"
    )


def _writer(subject: str) -> str:
    """Who may write it besides the manager, whose right covers all facts; else the manager."""
    others = [name for name, role in PERMISSIONS.items() if name != "manager" and _heard(role.publish, subject)]
    return ", ".join(others) or "manager"


def _heard(patterns: Iterable[str], subject: str) -> bool:
    return any(subjects.matches(pattern, subject) for pattern in patterns)


def _desired() -> str:
    models = {"compute": desired.DesiredCompute, "network": desired.DesiredNetwork}
    rows = [
        (
            _subject(key := subjects.desired_key(NODE, kind)),
            f"{kind}-ctl",
            _subject(subjects.desired_change(key)),
            _subject(subjects.fetch(NODE, kind)),
            _link(models[kind]),
        )
        for kind in subjects.DESIRED_KINDS
    ]
    return (
        f"## Desired state\n\nKeys of the bucket `{subjects.DESIRED_BUCKET}`. The node's agent hears each change, and "
        "asks the manager for the present document, which is empty where there is none.\n\n"
        + table(("key", "written by", "changes", "asked for", "document"), rows)
    )


def _reports() -> str:
    models = {
        "status": reports.Status,
        "applied": reports.Applied,
        "progress": reports.Progress,
        "links": reports.LinkReport,
        "data": reports.DataReport,
        "confinement": confinement.ConfinementReport,
        "checkpoints": checkpoints.CheckpointReport,
        "scores": scores.ScoreReport,
    }
    rows = [
        (_subject(subjects.report(NODE, kind)), ", ".join(_listeners(subjects.report(NODE, kind))), _link(models[kind]))
        for kind in subjects.REPORT_KINDS
    ]
    others = {SUBJECT: _link(reports.Alive), NEWS: "empty", MEASURED: f"a list of {_link(reports.Heartbeat)}"}
    rows += [(_subject(subject), ", ".join(_listeners(subject)), what) for subject, what in others.items()]
    return (
        "\n## Reports\n\nAn agent's, about its own node; the controllers' signs of life; what managers tell each other."
        " Not stored.\n\n" + table(("subject", "may be heard by", "report"), rows)
    )


def _listeners(subject: str) -> list[str]:
    return [name for name, role in PERMISSIONS.items() if _heard(role.subscribe, subject)]


def _queries() -> str:
    rows = [
        (subjects.heartbeat(NODE), "agent", "manager", reports.Heartbeat, reports.LeaseGrant),
        (subjects.renewal(NODE), "agent", "manager", agent_queries.CredentialQuery, agent_queries.Credential),
        (subjects.secrets(NODE), "agent", "manager", secrets.SecretsQuery, secrets.TaskSecrets),
        (subjects.rpc("manager", "snapshot"), "every service", "manager", records.SnapshotQuery, records.Snapshot),
        (subjects.rpc("scheduler", "plan"), "manager", "scheduler", queries.PlanQuery, queries.PlanAnswer),
        (subjects.rpc("scheduler", "move"), "manager", "scheduler", moves.MoveQuery, moves.MoveAnswer),
        (
            subjects.rpc("scheduler", "adjust"),
            "manager",
            "scheduler",
            adjustments.AdjustmentQuery,
            adjustments.AdjustmentAnswer,
        ),
        (subjects.rpc("scheduler", "queue"), "manager", "scheduler", queries.QueueQuery, queries.QueueAnswer),
        (subjects.rpc("scheduler", "policy"), "manager", "scheduler", policies.PolicyQuery, policies.PolicyAnswer),
        (
            subjects.rpc("scheduler", "decompose"),
            "manager",
            "scheduler",
            decompositions.DecompositionQuery,
            decompositions.DecompositionAnswer,
        ),
        (subjects.agent_rpc(NODE, "logs"), "manager", "agent", agent_queries.LogQuery, agent_queries.LogAnswer),
        (subjects.agent_rpc(NODE, "probe"), "manager", "agent", agent_queries.LinkProbe, agent_queries.LinkProbed),
        (subjects.spans(NODE), "agent", "manager", traces.SpanBatch, None),
        (subjects.rpc("manager", "spans"), "every service", "manager", traces.SpanBatch, None),
    ]
    return "\n## Queries\n\nRequest and reply.\n\n" + table(
        ("subject", "asked by", "answered by", "request", "reply"),
        [
            (_subject(subject), who, whom, _link(ask), _link(answer) if answer else "nothing")
            for subject, who, whom, ask, answer in rows
        ],
    )


def models() -> list[type[Message]]:
    """Every model of the wire, in the order of the modules; those that the REST API has, too, come last."""
    modules = (
        events,
        plans,
        desired,
        reports,
        confinement,
        checkpoints,
        agent_queries,
        queries,
        policies,
        decompositions,
        adjustments,
        records,
        traces,
    )
    in_modules = [each for module in modules for each in _of(module)]
    also = [moves.MoveCommitted, moves.MoveChanged, moves.MoveQuery, moves.MoveAnswer, users.UserMoved]
    also += [identities.TokenChanged, identities.SessionChanged, scores.Measurement, scores.ScoreReport]
    return [*in_modules, *also, secrets.SecretChanged, secrets.SecretsQuery, secrets.TaskSecrets]


def _of(module: ModuleType) -> list[type[Message]]:
    skipped = {events.CloudEvent}
    return [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Message)
        and each.__module__ == module.__name__
        and each not in skipped
        and "[" not in each.__name__
    ]


def _models() -> str:
    parts = ["\n## Models\n\nRates are bit/s, CPU is millicores, memory is bytes unless a field says otherwise.\n"]
    for model in models():
        said = docstring(model)
        parts.append(f"### {model.__name__}\n\n" + (f"{said}\n\n" if said else "") + _fields(model) + "\n")
    return "\n".join(parts)


def _fields(model: type[Message]) -> str:
    linked = frozenset[type](models())
    told: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if isinstance(each, type) and issubclass(each, Message) and each is not Message:
            told |= remarks(each)
    rows = [
        (code(name), _type(field.annotation, linked), default_text(field), told.get(name, ""))
        for name, field in model.model_fields.items()
    ]
    return table(("field", "type", "default", ""), rows)


def _type(annotation: object, linked: frozenset[type]) -> str:
    return "the event's data" if annotation is events.D else type_text(annotation, linked)


def _link(model: type[Message]) -> str:
    return f"[{model.__name__}](#{anchor(model.__name__)})"


def _subject(subject: str) -> str:
    for mark, shown in MARKS.items():
        subject = subject.replace(mark, shown)
    return code(subject)
