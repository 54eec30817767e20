"""``ces get regions``."""

from __future__ import annotations

from ces_client.cli import session
from ces_client.cli.live_view import WatchOption, watch_changes
from ces_client.cli.output import Output, OutputOption, tell
from ces_client.view.regions import region_table


def get_regions(watch: WatchOption = False, output: OutputOption = Output.TABLE) -> None:
    """List regions: what each told last of its room and its queue, and whose jobs it accepts."""
    with session.connect() as client:
        regions = client.regions.list()
        if watch:
            watch_changes(client.regions.list, regions, region_table, output)
        else:
            tell(regions, region_table(regions), output)
