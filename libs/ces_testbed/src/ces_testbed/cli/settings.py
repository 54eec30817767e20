"""Settings of a local cluster's services as ``ces up`` takes them: checked before anything is started.

The services themselves say which settings they read (``python -m ces_manager --settings``); none is imported here.
"""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ces_client.errors import BadInput, bad_field
from ces_testbed.services import AGENT_MODULE, DECIDED, MODULES

SOLVER, POLICY, QUEUE_POLICY = "CES_SOLVER", "CES_POLICY", "CES_QUEUE_POLICY"
READ_ELSEWHERE = frozenset({"CES_NO_NUMBA"})
"""What services read beside their settings."""
FOR_THE_CLIENT = frozenset({"CES_URL", "CES_TOKEN", "CES_CONTEXT", "CES_DATA_DIR", "CES_REQUIRE"})
ANSWER_S = 180.0  # for five services that start at once, on a small machine


def checked_settings(given: Sequence[str], solver: str | None, policy: Path | None) -> dict[str, str]:
    """The environment that ``--set KEY=VALUE``, ``--solver`` and ``--policy`` stand for. Raises BadInput."""
    settings: dict[str, str] = {}
    for text in given:
        key, found, value = text.partition("=")
        if not found or not key.strip():
            raise bad_field("A setting cannot be read", "--set", f"{text!r} has no '='", "write --set KEY=VALUE")
        settings[variable(key)] = value
    if solver is not None:
        settings[SOLVER] = solver
    if policy is not None:
        settings[POLICY] = str(policy)
    if settings.get(POLICY):
        settings[POLICY] = str(Path(settings[POLICY]).expanduser().absolute())
    if set(settings) - {SOLVER, POLICY}:
        _check_names_and_values(settings)
    if QUEUE_POLICY in settings:
        _check_queue_policy(settings[QUEUE_POLICY])
    if set(settings) & {SOLVER, POLICY}:
        _check_solver(settings.get(SOLVER), settings.get(POLICY))
    return settings


def variable(key: str) -> str:
    """``solve_time_limit_s``, ``solve-time-limit-s`` and ``CES_SOLVE_TIME_LIMIT_S`` are the same."""
    name = key.strip().upper().replace("-", "_")
    return name if name.startswith("CES_") else f"CES_{name}"


def not_passed_on(settings: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> list[str]:
    """For each variable of the shell that looks like a setting of a service and reaches none, a line that says so and
    what to write instead."""
    options = {SOLVER: f'--solver "${SOLVER}"', POLICY: f'--policy "${POLICY}"'}
    lines = []
    for name in sorted(environment):
        if not name.startswith("CES_") or name in FOR_THE_CLIENT or name in settings:
            continue
        # Whether a service reads it would take seconds to ask, and `--set` says so.
        option = f"write {options[name]}" if name in options else f'if it is a setting, write --set {name}="${name}"'
        remedy = DECIDED.get(name) or option
        lines.append(f"{name} of this shell is not passed on to the cluster: {remedy}")
    return lines


def unknown(name: str, known: Collection[str]) -> BadInput:
    near = difflib.get_close_matches(name, known, n=3)
    remedy = f"similar: {', '.join(near)}" if near else "docs/settings.md lists them"
    return bad_field("A setting is unknown", "--set", f"no service reads {name}", remedy)


def _check_names_and_values(settings: Mapping[str, str]) -> None:
    for name in settings:
        if name in DECIDED:
            raise bad_field("A setting cannot be set", "--set", f"{name} is the cluster's own", DECIDED[name])
    known, wrong = described_by_services(settings)
    for name in settings:
        if name not in known:
            raise unknown(name, known - DECIDED.keys())
    if wrong:
        remedy = "docs/settings.md tells what each takes"
        raise BadInput("A setting is wrong", [{"field": "--set", "problem": each, "remedy": remedy} for each in wrong])


def described_by_services(settings: Mapping[str, str]) -> tuple[set[str], list[str]]:
    """The variables that services read, and what is wrong with the given ones."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CES_")}
    environment |= settings
    asked = [
        subprocess.Popen(
            [sys.executable, "-m", module, "--settings"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for module in (*MODULES.values(), AGENT_MODULE)
    ]
    known, wrong = set(READ_ELSEWHERE), dict[str, None]()
    for process in asked:
        try:
            answer, error = process.communicate(timeout=ANSWER_S)
        except subprocess.TimeoutExpired:
            for each in asked:
                each.kill()
            text = f"no service has said within {ANSWER_S:g} s which it reads"
            remedy = "try again when the machine is less busy"
            raise bad_field("The settings cannot be checked", "--set", text, remedy) from None
        if process.returncode != 0:
            text = error.strip().rpartition("\n")[2]
            raise bad_field(
                "The settings cannot be checked", "--set", text, "make sure that every service is installed"
            )
        described = json.loads(answer)
        known |= set(described["settings"])
        wrong |= dict.fromkeys(described["wrong"])
    return known, list(wrong)


def _check_queue_policy(name: str) -> None:
    from ces_core.model.errors import QueuePolicyError
    from ces_core.queue.policies import get_queue_policy

    try:
        get_queue_policy(name)
    except QueuePolicyError as error:
        raise bad_field("The queue policy cannot be used", "--set", f"{QUEUE_POLICY}: {error}", "correct it") from error


def _check_solver(name: str | None, policy: str | None) -> None:
    """The scheduler would go on with another solver where a policy is refused, or leave one unread: not here."""
    from ces_core.model.errors import PolicyError, UnknownSolverError
    from ces_core.registry import DEFAULT, available, get_solver
    from ces_core.solver import Learned

    name = name or DEFAULT
    try:
        solver = get_solver(name)
    except UnknownSolverError as error:
        near = difflib.get_close_matches(name, available(), n=3)
        remedy = f"similar: {', '.join(near)}" if near else "`ces solvers` lists them"
        raise bad_field("The solver cannot be used", "--solver", str(error), remedy) from error
    if policy is None:
        return
    if not Path(policy).is_file():
        raise bad_field("The policy cannot be used", "--policy", f"there is no file {policy}", "correct the path")
    if not isinstance(solver, Learned):
        remedy = "leave --policy out, or name a solver that `ces solvers` says asks one"
        raise bad_field("The policy cannot be used", "--policy", f"the solver {name} asks no policy", remedy)
    try:
        solver.using(Path(policy))
    except PolicyError as error:
        raise bad_field("The policy cannot be used", "--policy", str(error), "name another file") from error
