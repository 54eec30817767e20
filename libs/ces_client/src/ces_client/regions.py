"""Regions, as the one that is asked knows them."""

from __future__ import annotations

import builtins

from ces_client.resource import Resource
from ces_common.messages.region_holds import HoldList
from ces_common.messages.regions import RegionList, RegionView


class Regions(Resource):
    def list(self) -> builtins.list[RegionView]:
        """This region first, and what it knows of the others."""
        return self._read(RegionList, self._http.request("GET", "regions")).items

    def holds(self) -> HoldList:
        """Jobs that regions hold for each other, as this one knows them."""
        return self._read(HoldList, self._http.request("GET", "regions/holds"))
