"""``ces up --regions`` and the end of such regions: whole clusters on one machine, and the hub between them."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from ces_client.cli.output import Output, show, show_json
from ces_client.errors import bad_field
from ces_common.runtime import RuntimeKind
from ces_testbed.borders import join_regions
from ces_testbed.cleanup import leftovers
from ces_testbed.cli.errors import Failed
from ces_testbed.cli.lifecycle import (
    api_port,
    check_folder,
    clear,
    make_folder,
    place,
    remove,
    start,
    take_away,
    take_name,
)
from ces_testbed.cli.options import Choice
from ces_testbed.errors import StartFailed
from ces_testbed.hub import Hub, HubFiles, gateway_of, places, prepare, region_names
from ces_testbed.hub_keeper import hub_is_up, remove_hub, start_hub
from ces_testbed.launch import Background, is_up
from ces_testbed.spec import LOCALHOST, ClusterSpec, Files, default_root, free_port

HUB_SUFFIX = "-hub"  # no cluster's name has a '-'


def hub_files(name: str) -> HubFiles:
    """Of the hub between the regions that ``ces up --regions --name NAME`` starts."""
    return HubFiles(default_root(name + HUB_SUFFIX))


def regions_up(
    asked: ClusterSpec, count: int, port: int | None, choice: Choice, screen: Console, output: Output, *, force: bool
) -> None:
    """Start the hub and ``count`` clusters like the asked one. Where one of them cannot be started, all are ended.
    Raises BadInput, Failed."""
    name = asked.name
    hub_at = hub_files(name)
    folders = {region: place(region, None)[1] for region in checked_names(name, count)}
    if hub_is_up(hub_at) or any(map(is_up, folders.values())):
        raise bad_field(f"Regions {name} are up already", "--name", "they run", f"`ces down --name {name}` ends them")
    for folder in folders.values():
        check_folder(folder)
        make_folder(folder)
    remove_hub(hub_at)
    hub = prepare(hub_at, name, {region: files.root for region, files in folders.items()})
    urls: dict[str, str] = {}
    try:
        start_hub(hub_at)
        gateways = dict.fromkeys(folders, gateway_of(asked.topology))
        there = places(hub_at, hub, gateways)
        for region, where in there.items():
            files = folders[region]
            spec = asked.model_copy(update={"name": region, "network": choice.network, "region": where})
            if spec.takes_name:
                take_name(region, files, force=force)
            clear(region, files, screen, containers=choice.runtime == RuntimeKind.DOCKER, fresh=True)
            first = not urls
            listens = api_port(port, screen) if first else free_port(LOCALHOST, set())
            spec = spec.model_copy(update={"api_port": listens})
            screen.print(Text(f"region {region}, workers in {where.block}"))
            last = start(Background(spec, files, tied=False), screen)
            if last.kind != "ready":
                take_away(spec, files, keep_state=False)
                raise Failed(f"The region {region} could not be started", last.text, files.logs)
            urls[region] = last.text
        if choice.network == "tc":
            join_regions(there)
    except StartFailed as error:
        raise Failed("The hub could not be started", str(error), hub_at.log) from error
    finally:
        if len(urls) < count:
            end_regions(hub_at, hub)
    if output == Output.JSON:
        show_json({"name": name, "hub": str(hub_at.root), "network": choice.network, "regions": urls})
        return
    show(Text(f"\n{count} regions are up, with a hub between them ({hub_at.root}):"))
    for region, url in urls.items():
        show(Text(f"  {region:<18}{url}"))
    show(Text("`ces use NAME` talks to one of them. Next:"))
    for command, what in (
        ("ces get regions", "what the regions tell each other"),
        (f"ces down --name {name}", "end all of them, and the hub"),
    ):
        show(Text(f"  {command:<28}{what}"))


def checked_names(name: str, count: int) -> list[str]:
    """Raises BadInput where the names of regions would be too long."""
    names = region_names(name, count)
    for each in names:
        place(each, None)
    return names


def regions_down(name: str, output: Output) -> bool:
    """End the regions of this name; whether there were any. Raises Failed."""
    hub_at = hub_files(name)
    hub = hub_at.read()
    if hub is None:
        return False
    left = end_regions(hub_at, hub)
    if left:
        raise Failed(f"Not all of the regions {name} could be removed", ", ".join(left))
    logs = {region: str(Files(root).logs) for region, root in hub.regions.items()}
    if output == Output.JSON:
        show_json({"name": name, "was_up": True, "logs": logs})
    else:
        show(Text(f"regions {', '.join(logs)} and their hub are down, nothing of them is left but their logs"))
    return True


def end_regions(hub_at: HubFiles, hub: Hub) -> list[str]:
    """End all regions and the hub; returns what is left."""
    left = []
    for region, root in hub.regions.items():
        files = Files(Path(root))
        spec = files.read_spec()
        if spec is None and not is_up(files):
            continue
        containers = spec is None or spec.runtime == RuntimeKind.DOCKER
        remove(region, files, containers=containers)
        left += leftovers(region, files, containers=containers)
    return [*left, *remove_hub(hub_at)]
