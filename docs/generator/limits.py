"""Every limit with its value and place, read from the constants that set it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from ces_common.quantities import format_duration
from generator.markdown import code, table

Show = Callable[[float], str]


def size(value: float) -> str:
    for unit, factor in (("MiB", 2**20), ("KiB", 2**10)):
        if value and value % factor == 0:
            return f"{value // factor:g} {unit}"
    return f"{value:,.0f} bytes"


def number(value: float) -> str:
    return f"{value:,.0f}" if value < 1e15 else f"{value:g}"


def characters(value: float) -> str:
    return f"{number(value)} characters"


def rate(value: float) -> str:
    return f"{value:g} a second"


def millicores(value: float) -> str:
    return f"{value:g}m"


def duration(value: float) -> str:
    return format_duration(int(value))


FILE = "refused"
UNHEARD = "ignored"
UNHEARD_OF_NETWORKS = "ignored by network-ctl"
C, M, A, N, F = "ces_common", "ces_manager", "ces_edge_agent", "ces_network_ctl", "ces_federation"
UNHEARD_OF_REGIONS = "not heard, counted in `ces_region_messages_refused_total`"

# What is limited, the constant, how its value is written, what happens beyond it.
GROUPS: dict[str, list[tuple[str, str, Show, str]]] = {
    "Requests to the API": [
        ("body of a request, which may not be compressed", f"{M}.api.limits.MAX_BODY", size, "413"),
        ("body of a request that is YAML", f"{M}.api.strict_route.MAX_YAML", size, "413"),
        ("bodies that are read at once, of one route", f"{M}.api.strict_route.AT_ONCE", number, "the next one waits"),
        ("mistakes that an answer lists", f"{M}.api.problems.MOST_ERRORS", number, "the others are counted"),
        (
            "streams of events and logs, of one address",
            f"{M}.api.limits.STREAMS_PER_ADDRESS",
            number,
            "429",
        ),
        (
            "streams of events and logs, with one token",
            f"{M}.api.limits.STREAMS_PER_TOKEN",
            number,
            "429",
        ),
        (
            "requests with one token but the first, in the long run",
            f"{M}.api.auth.REQUESTS_PER_S",
            rate,
            "429",
        ),
        (
            "requests with one token but the first, at once",
            f"{M}.api.auth.REQUESTS_AT_ONCE",
            number,
            "429",
        ),
        ("length of a path in the access log", f"{M}.api.access_log.LONGEST_PATH", characters, "cut there"),
        (
            "lines of the access log about an address whose requests have no token that is known",
            f"{M}.api.access_log.STRANGERS_PER_S",
            rate,
            "the next line counts those left out",
        ),
        ("the same, at once", f"{M}.api.access_log.STRANGERS_AT_ONCE", number, "the next line counts those left out"),
        (
            "wrong tokens, from one address, in the long run",
            f"{M}.api.failure_counts.FAILURES_PER_S",
            rate,
            "429",
        ),
        (
            "wrong tokens, or some not known yet, from one address, at once",
            f"{M}.api.failure_counts.BURST",
            number,
            "429",
        ),
        (
            "link that a list of flows is asked for",
            f"{M}.api.dashboard.MAX_LINK",
            characters,
            "422",
        ),
        ("positions on the map, of one request", f"{C}.messages.dashboard.MAX_POSITIONS", number, "422"),
        (
            "flows of one tenant that fall short, in the live picture",
            f"{M}.live.look.MOST_SHORTFALLS",
            number,
            "the others are left out",
        ),
        ("changes that a live stream resumes after", f"{M}.live.feed.KEPT", number, "the whole picture comes again"),
        ("events between two keyframes", f"{M}.replay.keyframes.EVENTS", number, "another keyframe is kept"),
        (
            "events among which the last failure is looked for",
            f"{M}.replay.changes.FARTHEST",
            number,
            "a replay begins now",
        ),
        ("sessions and codes of one holder", f"{M}.access.sessions.MAX_SESSIONS", number, "429"),
        ("published audits", f"{M}.audits.KEPT", number, "the oldest are dropped"),
        (
            "findings that a published audit lists",
            f"{C}.messages.audits.MAX_FINDINGS",
            number,
            "422; `ces` counts the others",
        ),
        ("`If-None-Match` of a request", f"{M}.api.etags.LONGEST", characters, "422"),
        ("nodes for which a profile predicts at once", f"{M}.api.work.MOST_NODES", number, "422"),
        (
            "time for saying where a node's jobs could go",
            "ces_scheduler.elsewhere.LONGEST_S",
            duration,
            "nothing is said of the others",
        ),
        ("curves of progress", f"{M}.progress_history.MAX_CURVES", number, "those silent for longest are forgotten"),
        ("points of a curve", f"{M}.progress_history.MAX_POINTS", number, "every second one is left out"),
        ("neighbours of a node whose links have a history", f"{M}.usage_history.MAX_PEERS", number, "others have none"),
        ("tenants of one token", f"{C}.messages.identities.MAX_TENANTS", number, "422"),
        ("how long a token may be good", f"{C}.messages.identities.LONGEST_S", duration, "422"),
        ("grants to groups", f"{M}.access.grants.MAX_GRANTS", number, "the service does not start"),
        ("keys of an OpenID provider", f"{M}.access.provider.MOST_KEYS", number, "the others are left out"),
        ("what an OpenID provider answers", f"{M}.access.provider.LARGEST_ANSWER", size, "it counts as no answer"),
        ("name of a person in a provider's token", f"{M}.access.grants.LONGEST_NAME", characters, "401"),
        (
            "tokens whose owners are remembered",
            f"{M}.access.identities.REMEMBERED",
            number,
            "the database is asked again",
        ),
        (
            "attempts to join or renew that fail, from one address",
            f"{M}.api.failure_counts.FAILURES_PER_S",
            rate,
            "429",
        ),
        (
            "such attempts at once",
            f"{M}.api.failure_counts.BURST",
            number,
            "429",
        ),
        (
            "applications of one address",
            f"{M}.api.failed_attempts.APPLICATIONS_PER_S",
            rate,
            "429",
        ),
        ("applications of all addresses", f"{M}.nodes.applicants.APPLICATIONS_PER_S", rate, "429"),
        (
            "addresses whose failures are counted",
            f"{M}.api.failure_counts.MOST_ADDRESSES",
            number,
            "the one that failed longest ago is forgotten",
        ),
        ("changes that wait for the database", f"{M}.database.MAX_WAITING", number, "429"),
        ("the same, of one token", f"{M}.database.MAX_WAITING_OF_ONE", number, "429"),
        ("progress that waits for a slow stream", f"{M}.broadcast.QUEUED", number, "left out; events never are"),
        ("a name, id or cursor in an address", f"{C}.messages.bounds.MAX_ID", characters, "422"),
        ("lists and mappings in a YAML file, in each other", f"{C}.documents.DEEPEST", number, "refused with its line"),
        ("a job or topology file", "ces_client.files.LARGEST_FILE", size, "refused before it is sent"),
    ],
    "Jobs": [
        ("tasks", f"{C}.jobfile.MAX_TASKS", number, FILE),
        ("flows, inputs among them", f"{C}.flowfile.MAX_FLOWS", number, FILE),
        ("datasets of one input", f"{C}.flowfile.MAX_DATASETS", number, FILE),
        ("all that one task reads, written out", f"{C}.jobfile.MAX_INPUTS", characters, FILE),
        ("variables of one task", f"{C}.jobfile.MAX_ENV", number, FILE),
        ("`regions` that it names", f"{C}.jobfile.MAX_REGIONS", number, FILE),
        ("secrets of one task", f"{C}.jobfile.MAX_SECRETS", number, FILE),
        ("a secret", f"{C}.messages.secrets.MAX_VALUE", size, "422"),
        ("secrets of one tenant", f"{M}.job_secrets.store.MAX_OF_TENANT", number, "409"),
        ("labels that a task asks for, or a node has", f"{C}.fields.MAX_LABELS", number, FILE),
        ("name of a task", f"{C}.jobfile.LONGEST_NAME", characters, FILE),
        ("`duration`", f"{C}.jobfile.LONGEST_RUN", duration, FILE),
        ("`deadline`, from submission on", f"{C}.deadline.LATEST", duration, FILE),
        ("workers of a malleable job", f"{C}.elastic.LARGEST_SIZE", number, FILE),
        ("`elastic.grace`", f"{C}.elastic.LONGEST_GRACE", duration, FILE),
        ("`elastic.speed.total`, and a worker's `step`", f"{C}.elastic.MOST_WORK", number, FILE),
        ("sizes in `elastic.speed.hint`", f"{C}.elastic.MOST_HINTS", number, FILE),
        ("a speed in `elastic.speed.hint`, units/s", f"{C}.elastic.FASTEST", number, FILE),
        ("the least such speed", f"{C}.elastic.SLOWEST", "{:g}".format, FILE),
        ("`disconnect`", f"{C}.disconnect.LONGEST", duration, FILE),
        ("any CPU (millicores), memory (bytes) or bandwidth (bit/s)", f"{C}.quantities.LARGEST", number, FILE),
        ("reason of a job", f"{M}.jobs.lifecycle.MAX_REASON", characters, "cut"),
    ],
    "Topology and queue": [
        ("links in a topology file", f"{C}.messages.api.MAX_LINKS", number, FILE),
        ("media in a topology file", f"{C}.messages.api.MAX_MEDIA", number, FILE),
        ("`window` and `reservations`", f"{C}.queuefile.MAX_WAITING", number, "the service does not start"),
        ("any weight", f"{C}.queuefile.LARGEST_WEIGHT", number, "the service does not start"),
        ("tenants", f"{C}.queuefile.MAX_TENANTS", number, "the service does not start"),
    ],
    "What one node's agent may say": [
        ("a heartbeat, expanded", f"{C}.messages.reports.MAX_HEARTBEAT", size, "refused, so no lease"),
        ("heartbeats", f"{M}.messaging.heartbeat_intake.PER_S", rate, "refused, so no lease"),
        ("heartbeats at once", f"{M}.messaging.heartbeat_intake.BURST", number, "refused, so no lease"),
        ("any other report, as sent", f"{M}.messaging.report_intake.LARGEST", size, UNHEARD),
        ("reports of each kind", f"{M}.messaging.report_intake.PER_S", rate, UNHEARD),
        ("reports of each kind at once", f"{M}.messaging.report_intake.BURST", number, UNHEARD),
        ("a report of its network, to network-ctl", f"{N}.announcements.LARGEST", size, UNHEARD_OF_NETWORKS),
        ("such reports", f"{N}.announcements.PER_S", rate, UNHEARD_OF_NETWORKS),
        ("such reports at once", f"{N}.announcements.BURST", number, UNHEARD_OF_NETWORKS),
        ("a line of progress, encoded", f"{M}.messaging.progress_intake.LARGEST", size, UNHEARD),
        ("lines of progress", f"{M}.messaging.progress_intake.PER_S", rate, UNHEARD),
        ("lines of progress at once", f"{M}.messaging.progress_intake.BURST", number, UNHEARD),
        ("lines of progress, of one worker", f"{M}.messaging.progress_intake.WORKER_PER_S", rate, UNHEARD),
        ("looks for whose a worker is", f"{M}.messaging.progress_intake.UNKNOWN_PER_S", rate, UNHEARD),
        ("spans of traced jobs in one message", f"{C}.messages.traces.MAX_BATCH", number, "refused"),
        ("such a message, expanded", f"{M}.messaging.span_intake.LARGEST", size, "refused"),
        ("such messages", f"{M}.messaging.span_intake.PER_S", rate, "refused, and told again later"),
        ("such messages at once", f"{M}.messaging.span_intake.BURST", number, "refused, and told again later"),
        ("a text in a span's attributes", f"{C}.messages.traces.LONGEST_TEXT", characters, "refused"),
        ("attributes of a span", f"{C}.messages.traces.MAX_ATTRIBUTES", number, "refused"),
        ("links of a span", f"{C}.messages.traces.MAX_LINKS", number, "refused"),
        ("spans of one attempt that are kept of it", f"{M}.jobs.spans.MOST_OF_NODE", number, "dropped, and counted"),
        ("spans of one attempt, of all", f"{M}.jobs.spans.MOST_OF_ATTEMPT", number, "dropped, and counted"),
        ("spans that wait to be kept, of all", f"{M}.messaging.span_intake.MOST_WAITING", number, "told again later"),
        ("requests to renew its credential", f"{M}.nodes.credentials.RENEWALS_PER_S", rate, "refused"),
        ("questions for desired documents, of each kind", f"{M}.messaging.handlers.FETCHES_PER_S", rate, "refused"),
        ("such questions at once", f"{M}.messaging.handlers.FETCH_BURST", number, "refused"),
        ("questions for secrets", f"{M}.job_secrets.delivery.REQUESTS_PER_S", rate, "refused, and the start waits"),
        ("such questions at once", f"{M}.job_secrets.delivery.REQUEST_BURST", number, "refused, and the start waits"),
        ("loans of its device that end a reclaim", f"{M}.nodes.owners.LOANS_PER_S", rate, "it stays reclaimed"),
        ("such loans at once", f"{M}.nodes.owners.LOANS_AT_ONCE", number, "it stays reclaimed"),
        ("measurements in a report of scores", f"{C}.messages.scores.MAX_MEASURED", number, UNHEARD),
        ("reports of other scores than before", f"{M}.nodes.scores.CHANGES_PER_S", rate, "not heard"),
        ("such reports at once", f"{M}.nodes.scores.CHANGES_AT_ONCE", number, "not heard"),
        ("workers or links in a report", f"{C}.messages.bounds.MAX_ITEMS", number, UNHEARD),
        ("flows in a heartbeat", f"{C}.messages.reports.MAX_FLOWS", number, "refused, so no lease"),
        (
            "workers whose energy it tells",
            f"{C}.messages.energy.MAX_METERED",
            number,
            "refused, so no lease",
        ),
        ("watts", f"{C}.messages.energy.MOST_WATTS", number, "no more is counted"),
        ("jobs whose network is in place", f"{C}.messages.bounds.MAX_ATTEMPTS", number, UNHEARD),
        ("checkpoints of one job that it holds", f"{C}.messages.checkpoints.MAX_HELD", number, UNHEARD),
        ("datasets that it offers", f"{C}.messages.reports.MAX_OFFERED", number, UNHEARD),
        ("a reason", f"{C}.messages.bounds.MAX_REASON", characters, "cut"),
    ],
    "What another region may say": [
        ("a message", f"{F}.wire.LARGEST", size, UNHEARD_OF_REGIONS),
        ("messages", f"{F}.wire.PER_S", rate, UNHEARD_OF_REGIONS),
        ("messages at once", f"{F}.wire.BURST", number, UNHEARD_OF_REGIONS),
        ("answers", f"{F}.wire.ANSWERS_PER_S", rate, UNHEARD_OF_REGIONS),
        ("answers at once", f"{F}.wire.ANSWERS_BURST", number, UNHEARD_OF_REGIONS),
        ("questions for logs and flows", f"{F}.wire.LOOKS_PER_S", rate, UNHEARD_OF_REGIONS),
        ("such questions at once", f"{F}.wire.LOOKS_BURST", number, UNHEARD_OF_REGIONS),
        ("such questions that are being answered", f"{F}.wire.LOOKS_AT_ONCE", number, "not answered"),
        ("age of a message", f"{F}.seals.FRESH_S", duration, UNHEARD_OF_REGIONS),
        ("questions that are being answered", f"{F}.wire.AT_ONCE", number, "not answered"),
        ("jobs in one question", f"{C}.messages.regions.MAX_JOBS", number, "not answered"),
        ("datasets in a summary", f"{C}.messages.regions.MAX_DATASETS", number, "not heard"),
        ("tenants that one region accepts of another", f"{C}.messages.regions.MAX_ACCEPTED", number, "not heard"),
        ("other regions of one", f"{C}.messages.regions.MAX_REGIONS", number, "the service does not start"),
        ("a message on the hub", f"{C}.natsauth.regions.MAX_PAYLOAD", size, "NATS ends the connection"),
        ("a question of its own service to the manager", f"{M}.messaging.region_requests.LARGEST", size, "refused"),
        ("parts of one job", f"{C}.messages.split.MAX_PARTS", number, "not answered"),
        ("holding a job that is not committed", f"{C}.messages.regions.HOLD_S", duration, "it is cancelled"),
    ],
    "Keys of encrypted links that are replaced": [
        ("waiting for neighbours who go first", f"{A}.dataplane.wireguard.keys.WAIT_S", duration, "goes over too"),
        (
            "looking closely at a neighbour that replaces its key, of each hour",
            f"{A}.dataplane.wireguard.pace.BELIEVED_S",
            duration,
            "looked at once a second",
        ),
    ],
    "A lent device that its owner has back": [
        ("until its workers are killed", f"{A}.lending.decision.LONGEST_GRACE_S", duration, "killed at once"),
        ("CPU of a worker until then", f"{A}.reconcilers.workers.LAST_CPU", millicores, "it waits"),
    ],
    "Messages of all": [
        ("a message on NATS", f"{C}.natsauth.config.MAX_PAYLOAD", size, "NATS ends the connection"),
        ("a request, or the answer of an agent, expanded", f"{C}.bus.port.LARGEST_REQUEST", size, "refused"),
        ("an answer of a service, expanded", f"{C}.bus.port.LARGEST_ANSWER", size, "refused"),
        ("a desired document, expanded", f"{C}.bus.codec.LARGEST_DOCUMENT", size, "not followed"),
        ("requests that are served at once, of one subject", f"{C}.bus.nats.SERVED_AT_ONCE", number, "the next waits"),
        ("senders whose messages wait for one reader", f"{C}.latest.MOST", number, "dropped"),
        ("all that waits for one reader", f"{C}.latest.MOST_BYTES", size, "dropped"),
    ],
    "Workers' output and data": [
        (
            "what it keeps on disk, and one file of it, by default",
            f"{A}.runtimes.disk_meter.DISK",
            size,
            "[it is ended](workers.md#how-much-it-may-keep)",
        ),
        ("a log", f"{A}.runtimes.log_file.LIMIT", size, "the middle is dropped, and a line says so"),
        ("a line that is read as progress", f"{A}.logs.LINE_LIMIT", size, "not read as progress"),
        ("a piece of a log in one answer", f"{C}.messages.agent_queries.MAX_LOG", size, "comes in several"),
        ("a line of a log that waits for its end", f"{M}.api.logs.LONGEST_LINE", number, "passed on in pieces"),
        ("connections of one reader of data", f"{A}.inputs.server.MAX_EACH", number, "503 with `Retry-After`"),
        ("connections of all readers of data", f"{A}.inputs.server.MAX_TOTAL", number, "503, but for a reader's first"),
        ("entries of a folder that are listed", f"{A}.inputs.store.MAX_LISTED", number, "left out, and said"),
        ("files and folders of a checkpoint", f"{A}.checkpoints.archive.MAX_ENTRIES", number, "it is not copied"),
        ("folders of a checkpoint within each other", f"{A}.checkpoints.archive.MAX_DEPTH", number, "it is not copied"),
        (
            "older checkpoints of a job whose copies are kept",
            f"{C}.messages.checkpoints.COPIES",
            number,
            "the oldest go",
        ),
        ("nodes counted on for one checkpoint", f"{M}.jobs.checkpoints.HOLDERS", number, "others are not asked"),
        (
            "what checkpoints of others leave of a disk, or 5 % of it",
            f"{A}.checkpoints.shelf.LEFT_FREE",
            size,
            "none is packed or fetched",
        ),
        (
            "the least rate of a checkpoint's fetch, in bytes a second",
            f"{A}.checkpoints.download.LEAST_RATE",
            number,
            "the next copy is tried",
        ),
        (
            "waiting for a node that does not serve a checkpoint yet",
            f"{A}.checkpoints.beginnings.PATIENCE_S",
            duration,
            "the next copy is tried",
        ),
    ],
    "What the manager keeps in memory, of one node": [
        ("reports of its flows", f"{M}.measurements.MAX_REPORTS", number, "the oldest go"),
        ("samples of its flows", f"{M}.measurements.MAX_SAMPLES", number, "the oldest go"),
        ("workers whose progress is remembered", f"{M}.measurements.MAX_PROGRESS", number, "the silent ones go"),
        ("starts by whose steps speeds are measured", f"{M}.speed_meter.MOST_STARTS", number, "the silent ones go"),
        ("seconds on an agent's clock, of a line of progress", f"{M}.speed_meter.LATEST_S", number, "not measured"),
        (
            "starts whose energy is not written down yet",
            f"{M}.energy_book.MOST_STARTS",
            number,
            "the oldest go",
        ),
        ("steps of one start", f"{M}.speed_meter.MOST_SAMPLES", number, "the oldest go"),
        (
            "starts whose CPU time is set beside their steps",
            f"{M}.work_meter.MOST_STARTS",
            number,
            "the silent ones go",
        ),
        ("pairs of CPU time and step, of one start", f"{M}.work_meter.MOST_PAIRS", number, "every second one goes"),
    ],
}

APPLICATIONS: list[tuple[str, str, Show, str]] = [
    ("`users` of an application", f"{C}.application.MAX_USERS", number, FILE),
    ("its classes of `requests`", f"{C}.application.MAX_REQUESTS", number, FILE),
    ("tasks in a `chain`", f"{C}.application.MAX_CHAIN", number, FILE),
    ("requests a second of one class", f"{C}.application.FASTEST", number, FILE),
    ("a request's `deadline`, access or `longest` (microseconds)", f"{C}.application.LONGEST_WAIT", number, FILE),
    ("`work.per_request` (microseconds of the reference core)", f"{C}.application.MOST_WORK", number, FILE),
    ("`message` of an edge", f"{C}.flowfile.LARGEST_MESSAGE", size, FILE),
    ("`delay` of a link (microseconds)", f"{C}.application.LONGEST_DELAY", number, FILE),
    ("metres of a node's coverage", f"{C}.messages.profiles.MOST_COVERAGE", number, "the agent does not start"),
]
"""They stand on the page of applications."""


def value_of(constant: str) -> float:
    module, _, name = constant.rpartition(".")
    value: float = getattr(import_module(module), name)
    return value


def tables() -> str:
    return "\n\n".join(f"## {heading}\n\n{_table(limits)}" for heading, limits in GROUPS.items())


def of_applications() -> str:
    return _table(APPLICATIONS)


def _table(limits: list[tuple[str, str, Show, str]]) -> str:
    rows = [(what, show(value_of(place)), code(place), beyond) for what, place, show, beyond in limits]
    return table(("what", "at most", "set in", "beyond it"), rows)
