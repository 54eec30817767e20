"""Two backbones of SNDlib with the coordinates of their nodes: nobel-germany and abilene.

S. Orlowski, R. Wessäly, M. Pióro, A. Tomaszewski, "SNDlib 1.0 - Survivable Network Design Library", Networks 55(3),
2010; https://sndlib.put.poznan.pl. Only places and wires are taken from there. Delays follow from the distance of the
ends on a sphere at 5 µs/km, the speed of light in fibre: a lower bound, since no fibre lies straight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

MS_PER_KM = 0.005
EARTH_KM = 6371.0


@dataclass(frozen=True)
class Backbone:
    """``places``: node -> degrees north and east. ``wires``: each leads both ways."""

    places: Mapping[str, tuple[float, float]]
    wires: tuple[tuple[str, str], ...]

    def delay_ms(self, a: str, b: str) -> float:
        """One way over the wire between two nodes."""
        return MS_PER_KM * distance_km(self.places[a], self.places[b])


def distance_km(one: tuple[float, float], other: tuple[float, float]) -> float:
    """On a sphere, by the haversine formula."""
    north_a, east_a, north_b, east_b = map(math.radians, (*one, *other))
    half = math.sin((north_b - north_a) / 2) ** 2
    half += math.cos(north_a) * math.cos(north_b) * math.sin((east_b - east_a) / 2) ** 2
    return 2 * EARTH_KM * math.asin(math.sqrt(half))


def _wires(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (wire.split("-") for wire in text.split())
    return tuple((a, b) for a, b in pairs)


NOBEL_GERMANY = Backbone(
    {
        "Berlin": (52.52, 13.48),
        "Bremen": (53.08, 8.80),
        "Dortmund": (51.51, 7.48),
        "Duesseldorf": (51.22, 6.78),
        "Essen": (51.44, 7.00),
        "Frankfurt": (50.14, 8.66),
        "Hamburg": (53.55, 10.08),
        "Hannover": (52.39, 9.80),
        "Karlsruhe": (49.01, 8.41),
        "Koeln": (50.92, 7.01),
        "Leipzig": (51.34, 12.38),
        "Mannheim": (49.49, 8.49),
        "Muenchen": (48.15, 11.55),
        "Norden": (53.60, 7.21),
        "Nuernberg": (49.45, 11.08),
        "Stuttgart": (48.73, 9.12),
        "Ulm": (48.40, 9.99),
    },
    _wires(
        "Berlin-Hamburg Berlin-Hannover Berlin-Leipzig Bremen-Hamburg Bremen-Hannover Bremen-Norden Dortmund-Essen "
        "Dortmund-Hannover Dortmund-Koeln Dortmund-Norden Duesseldorf-Essen Duesseldorf-Koeln Frankfurt-Hannover "
        "Frankfurt-Koeln Frankfurt-Leipzig Frankfurt-Mannheim Frankfurt-Nuernberg Hamburg-Hannover Hannover-Leipzig "
        "Karlsruhe-Mannheim Karlsruhe-Stuttgart Leipzig-Nuernberg Muenchen-Nuernberg Muenchen-Ulm Nuernberg-Stuttgart "
        "Stuttgart-Ulm"
    ),
)
ABILENE = Backbone(
    {
        "ATLAM5": (33.75, -84.3833),
        "ATLAng": (34.50, -85.50),
        "CHINng": (41.8333, -87.6167),
        "DNVRng": (40.75, -105.00),
        "HSTNng": (29.770031, -95.517364),
        "IPLSng": (39.780622, -86.159535),
        "KSCYng": (38.961694, -96.596704),
        "LOSAng": (34.05, -118.25),
        "NYCMng": (40.7833, -73.9667),
        "SNVAng": (37.38575, -122.02553),
        "STTLng": (47.60, -122.30),
        "WASHng": (38.897303, -77.026842),
    },
    _wires(
        "ATLAM5-ATLAng ATLAng-HSTNng ATLAng-IPLSng ATLAng-WASHng CHINng-IPLSng CHINng-NYCMng DNVRng-KSCYng "
        "DNVRng-SNVAng DNVRng-STTLng HSTNng-KSCYng HSTNng-LOSAng IPLSng-KSCYng LOSAng-SNVAng NYCMng-WASHng "
        "SNVAng-STTLng"
    ),
)
BACKBONES: Mapping[str, Backbone] = {"nobel-germany": NOBEL_GERMANY, "abilene": ABILENE}
