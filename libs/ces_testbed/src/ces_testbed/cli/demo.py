"""``ces demo``."""

from __future__ import annotations

import secrets
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ces_client import Client, Context, load_job
from ces_client.bridge import HERE, bridge_beside
from ces_client.cli.output import console
from ces_client.errors import bad_field
from ces_common.quantities import show_bandwidth, show_cpu, show_memory
from ces_common.runtime import RuntimeKind
from ces_common.states import JobState
from ces_testbed.capability import missing_images
from ces_testbed.cleanup import leftovers, remove_cluster
from ces_testbed.cli.display import show_progress
from ces_testbed.cli.errors import Failed
from ces_testbed.cli.options import Choice, NetworkChoice, choose
from ces_testbed.demo import Ended, Signals, demo_job, flow_summary, new_root, result_line, run_job
from ces_testbed.errors import TestbedError
from ces_testbed.launch import Background
from ces_testbed.progress import News
from ces_testbed.spec import LOCALHOST, ClusterSpec, Files, free_port
from ces_testbed.topology import Topology, default_topology

END_S = 60.0
INTERRUPTED = 130
NEXT = (
    ("ces up", "a cluster that stays; `ces down` ends it"),
    ("ces submit examples/jobs/digits-ring.yaml --wait", "this job again, or one of your own"),
    ("ces get nodes | links | jobs", "what there is and what it carries"),
    ("ces --help", "everything else"),
)


def demo(
    runtime: Annotated[
        RuntimeKind, typer.Option("--runtime", envvar="RUNTIME", help="how workers run")
    ] = RuntimeKind.PROCESS,
    network: Annotated[
        NetworkChoice, typer.Option("--network", envvar="NETWORK", help="auto takes tc where this machine can")
    ] = NetworkChoice.AUTO,
) -> None:
    """Train a model on emulated edge hosts, watch it live, and leave a clean machine."""
    screen = console()
    choice = choose(runtime, network)
    if choice.runtime == RuntimeKind.DOCKER and (missing := missing_images(load_job(demo_job()))):
        raise bad_field(
            "Images are missing",
            "--runtime",
            f"the engine has no {', '.join(missing)}",
            "build them: make images",
        )
    topology = default_topology()
    files = Files(new_root())
    spec = ClusterSpec(
        name=f"demo{secrets.token_hex(3)}",
        topology=topology,
        runtime=choice.runtime,
        network=choice.network,
        api_port=free_port(LOCALHOST, set()),
        save_context=False,
    )
    _greet(screen, topology, choice)
    signals = Signals()
    background = Background(spec, files, tied=True)
    problem: str | None = None
    with signals.caught():
        try:
            background.start()
            with signals.may_interrupt():
                problem = _perform(background, files, screen)
        except Ended:
            screen.print("\ninterrupted; taking everything away", style="yellow")
        except TestbedError as error:
            problem = str(error)
        finally:
            left = _take_away(background, spec, files, screen)
    if problem is not None and not signals.came:
        raise Failed("The demonstration failed", problem, files.logs)
    shutil.rmtree(files.root, ignore_errors=True)
    if left:
        raise Failed("The machine is not clean", ", ".join(left))
    screen.print(
        Text("✓ ", style="green").append("clean: no process, namespace, device, control group or container is left")
    )
    if signals.came:
        raise typer.Exit(INTERRUPTED)
    screen.print(Text("\nWhere to go next:", style="bold"))
    if shutil.which("ces") is None:
        here = Path(sys.argv[0]).parent.absolute()
        screen.print(Text(f'  export PATH="{here}:$PATH"', style="cyan"), soft_wrap=True)
    width = max(len(command) for command, _ in NEXT) + 2
    for command, what in NEXT:
        screen.print(Text(f"  {command:<{width}}", style="cyan").append(what, style="default"))


def _greet(screen: Console, topology: Topology, choice: Choice) -> None:
    hosts, switches = topology.workers, [node for node in topology.nodes if node.is_switch]
    rates = sorted({link.bandwidth for link in topology.links})
    screen.print(Text("CES: a five-worker ring all-reduce, placed, networked and trained on an edge cluster", "bold"))
    screen.print(
        f"{len(hosts)} edge hosts ({show_cpu(hosts[0].cpu)}, {show_memory(hosts[0].memory)} each) and "
        f"{len(switches)} switch, joined by {len(topology.wires)} wires of "
        f"{' or '.join(show_bandwidth(rate) for rate in rates)}; workers run by {choice.runtime}"
    )
    screen.print(Text(choice.note + "\n", style="green" if choice.unenforced is None else "yellow"))


def _perform(background: Background, files: Files, screen: Console) -> str | None:
    """The demonstration itself; returns what went wrong, None where nothing did."""
    ready = show_progress(background.news(), screen)
    if ready.kind != "ready":
        return ready.text or "the cluster ended by itself"
    context = Context(ready.text, files.token.read_text().strip())
    with Client.from_context(context) as client, bridge_beside(context) as port:
        code = client.dashboard_code().code
        screen.print(Text("watch it in a browser, too; the address is good once, and for a minute:"))
        screen.print(Text(f"  http://{HERE}:{port}/ui/#code={code}\n", style="cyan"), soft_wrap=True)
        view, observed = run_job(client, screen)
    screen.print()
    if any(flow.enforced for flow in view.flows):
        screen.print(flow_summary(view, observed))
    screen.print(result_line(view))
    screen.print()
    return None if view.state == JobState.SUCCEEDED else f"the job {view.state}: {view.reason or 'no reason given'}"


def _take_away(background: Background, spec: ClusterSpec, files: Files, screen: Console) -> list[str]:
    """End the cluster, then look for oneself whether anything is left, and remove that too."""
    background.ask_to_end()
    last = News(kind="step")
    while last.kind not in ("stopped", "failed"):
        last = show_progress(background.news(), screen)
    ended = background.wait(END_S)
    containers = spec.runtime == RuntimeKind.DOCKER
    if not ended or leftovers(spec.name, files, containers=containers):
        remove_cluster(spec.name, files, containers=containers)
    return leftovers(spec.name, files, containers=containers)
