"""``ces up`` and ``ces down``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ces_client.cli.output import Output, OutputOption, console, show, show_json
from ces_client.context import context_path, read_contexts
from ces_client.errors import BadInput, bad_field
from ces_common.runtime import RuntimeKind
from ces_testbed import owners
from ces_testbed.cleanup import leftovers
from ces_testbed.cli.errors import Failed
from ces_testbed.cli.lifecycle import (
    api_port,
    check_folder,
    choose_again,
    clear,
    down_command,
    left_behind,
    make_folder,
    place,
    refuse_changes,
    remove,
    start,
    take_away,
    take_name,
)
from ces_testbed.cli.options import (
    NetworkChoice,
    TopologyOption,
    checked_queue,
    choose,
    is_given,
    option,
    read_topology,
)
from ces_testbed.cli.regions import regions_down, regions_up
from ces_testbed.cli.settings import checked_settings, not_passed_on
from ces_testbed.hub import MOST_REGIONS
from ces_testbed.launch import Background, is_up
from ces_testbed.spec import ClusterSpec, Files

ClusterOption = Annotated[
    str | None, typer.Option("--name", help="of the cluster: lower-case letters and digits; by default local")
]
StateOption = Annotated[
    Path | None, typer.Option("--state", help="folder for its files; by default under ~/.local/state/ces")
]


def up(
    ctx: typer.Context,
    runtime: Annotated[RuntimeKind, typer.Option("--runtime", help="how workers run")] = RuntimeKind.PROCESS,
    network: Annotated[
        NetworkChoice, typer.Option("--network", help="tc enforces bandwidth and needs root; auto takes it if it can")
    ] = NetworkChoice.AUTO,
    topology: TopologyOption = None,
    queue: Annotated[
        Path | None, typer.Option("--queue", help="file of the queue's parameters and tenants; left out, all defaults")
    ] = None,
    solver: Annotated[
        str | None, typer.Option("--solver", help="that decides: one that `ces solvers` lists; by default `default`")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option("--policy", help="file of the policy that the solver asks, instead of its usual one")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="a setting of the services, such as tick_s=0.5; repeatable"),
    ] = None,
    port: Annotated[int | None, typer.Option("--port", min=1, max=65535, help="of the API; by default 8080")] = None,
    name: ClusterOption = None,
    state: StateOption = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="drop what a cluster of this name left behind instead of resuming it")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="end another's cluster of this name first")] = False,
    regions: Annotated[
        int | None,
        typer.Option(
            "--regions", min=2, max=MOST_REGIONS, help="how many clusters, NAME1 and so on, as regions of one hub"
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Start a local cluster in the background, or resume one whose own process was killed."""
    cluster, files = place(name, state)
    screen = console(stderr=output == Output.JSON)
    if regions is not None and state is not None:
        raise bad_field("Regions have folders of their own", "--state", "it names one folder", "leave it out")
    check_folder(files)
    if is_up(files):
        remedy = f"`{down_command(cluster, files)}` ends it"
        raise bad_field(f"The cluster {cluster} is up already", "--name", "it runs", remedy)
    if settings:  # five services start for it, which takes seconds
        screen.print(Text("asking the services which settings they take", style="dim"))
    asked = ClusterSpec(
        name=cluster,
        topology=read_topology(topology),
        runtime=runtime.value,
        queue=checked_queue(queue.absolute() if queue is not None else None),
        settings=checked_settings(settings or [], solver, policy),
    )
    for line in not_passed_on(asked.settings):
        screen.print(Text(line, style="yellow"), soft_wrap=True)
    if regions is not None:
        choice = choose(runtime, network)
        screen.print(Text(choice.note, style="" if choice.unenforced is None else "yellow"))
        regions_up(asked, regions, port, choice, screen, output, force=force)
        return
    kept = None if fresh else left_behind(files)
    if kept is not None:
        differs = {
            "runtime": asked.runtime != kept.runtime,
            "network": network not in (NetworkChoice.AUTO, kept.network),
            "topology": asked.topology != kept.topology,
            "queue": asked.queue != kept.queue,
            "solver": asked.settings != kept.settings,
            "policy": asked.settings != kept.settings,
            "settings": asked.settings != kept.settings,
            "port": port != kept.api_port,
        }
        refuse_changes(kept, files, [option(each) for each in differs if differs[each] and is_given(ctx, each)])
        spec, choice = kept, choose_again(kept)
    else:
        choice = choose(runtime, network)
        spec = asked.model_copy(update={"network": choice.network})
    make_folder(files)
    if spec.takes_name:
        take_name(cluster, files, force=force)
    if kept is not None:
        remark = "was left behind by a process that was killed: resuming it, with its jobs and history"
        screen.print(Text(f"cluster {cluster} {remark} (--fresh would drop them)", style="yellow"), soft_wrap=True)
    else:
        clear(cluster, files, screen, containers=choice.runtime == RuntimeKind.DOCKER, fresh=fresh)
        spec = spec.model_copy(update={"api_port": api_port(port, screen)})
    screen.print(Text(choice.note, style="" if choice.unenforced is None else "yellow"))
    last = start(Background(spec, files, tied=False), screen)
    if last.kind != "ready":
        take_away(spec, files, keep_state=kept is not None)
        raise Failed(f"The cluster {cluster} could not be started", last.text, files.logs)
    if output == Output.JSON:
        show_json({"name": cluster, "url": last.text, "state": str(files.root), "network": choice.network})
        return
    show(Text(f"\ncluster {cluster} is up at {last.text}; its files and logs: {files.root}"))
    show(Text(f"`ces` talks to it now ({context_path()}). Next:"))
    steps = [
        ("ces get nodes", "its nodes"),
        ("ces submit JOB.yaml --wait", "run a job, for example examples/jobs/digits-ring.yaml"),
        (down_command(cluster, files), "end it; only its logs stay"),
    ]
    if len(read_contexts().known) > 1:
        steps.append(("ces clusters", "the others; `ces use NAME` talks to another one"))
    width = max(28, *(len(command) + 2 for command, _ in steps))
    for command, what in steps:
        show(Text(f"  {command:<{width}}{what}"))


def down(
    name: ClusterOption = None,
    state: StateOption = None,
    force: Annotated[bool, typer.Option("--force", help="also where the cluster is another's")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """End a local cluster and take away all of it but its logs."""
    cluster, files = place(name, state)
    if state is None and regions_down(cluster, output):
        return
    owner = owners.other_owner(cluster, files)
    if owner is not None and files.read_spec() is None:
        if not force:
            remedy = f"`ces down --name {cluster} --state {owner.state}` ends it, or --force"
            raise bad_field(f"The cluster {cluster} is another's", "--name", f"it is that of {owner}", remedy)
        files = Files(Path(owner.state))
    spec = files.read_spec()
    known = spec is not None or is_up(files)
    containers = spec is None or spec.runtime == RuntimeKind.DOCKER
    if not known and not (leftovers(cluster, files, containers=False)):
        _nothing_to_end(cluster, files, output)
        return
    with console(stderr=True).status(f"ending cluster {cluster}"):
        remove(cluster, files, containers=containers)
    left = leftovers(cluster, files, containers=containers)
    if left:
        raise Failed(f"Not all of the cluster {cluster} could be removed", ", ".join(left))
    if output == Output.JSON:
        show_json({"name": cluster, "was_up": known, "logs": str(files.logs)})
    else:
        show(Text(f"cluster {cluster} is down, nothing of it is left but its logs: {files.logs}"))


def _nothing_to_end(cluster: str, files: Files, output: Output) -> None:
    """Raises Failed where there are others, one of which was probably meant."""
    others = _others()
    if others:
        raise Failed(
            f"There is no cluster {cluster}", f"nothing of it is in {files.root}; there are: {'; '.join(others)}"
        )
    if output == Output.JSON:
        show_json({"name": cluster, "was_up": False, "logs": str(files.logs)})
    else:
        show(Text(f"there is no cluster {cluster}, nor any other; nothing to do"))


def _others() -> list[str]:
    """The local clusters that this user's commands know, each with what ends it."""
    try:
        known = read_contexts().known
    except BadInput:
        return []
    return [f"{name} (`{down_command(name, Files(Path(each.state)))}`)" for name, each in known.items() if each.state]
