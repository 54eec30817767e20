"""Places of nodes on the map: the same nodes lie at the same places, in whatever order one hears of them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ui_modules import Modules

pytestmark = pytest.mark.needs("browser")

LAID_OUT = """
const { computePlaces } = await load("map/layout");
const groupOf = (name) => (name.startsWith("s") ? undefined : `site${name.at(-1) % 3}`);
const fixed = new Map(Object.entries(given.fixed));
const links = given.links.map(([src, dst]) => ({ src, dst }));
return new Promise((take, fail) => {
  const found = (places, done) => done && take(Object.fromEntries(places));
  const failed = () => fail(new Error("no worker"));
  computePlaces(given.names, links, groupOf, fixed, { watched: false, found, failed });
});
"""
NAMES = [f"n{i}" for i in range(20)] + ["s1", "s2", "s3"]
LINKS = [[f"n{i}", f"s{i % 3 + 1}"] for i in range(20)] + [["s1", "s2"], ["s2", "s3"]]


@pytest.mark.parametrize("fixed", [{}, {"s1": [0, 0], "n7": [300, 40]}])
def test_the_order_of_names_and_links_moves_nothing(ui: Modules, fixed: dict[str, Any]) -> None:
    both = [*LINKS, *([dst, src] for src, dst in LINKS)]
    places = ui.run(LAID_OUT, names=NAMES, links=both, fixed=fixed)
    assert set(places) == set(NAMES)
    assert len({tuple(place) for place in places.values()}) == len(NAMES)
    for seed in range(3):
        names, links = NAMES.copy(), both.copy()
        random.Random(seed).shuffle(names)
        random.Random(seed).shuffle(links)
        assert ui.run(LAID_OUT, names=names, links=links, fixed=fixed) == places


PAGES = """
localStorage.clear();
const live = await load("live");
const { followPlaces, beginPlaces, places, saved } = await load("map/places");
const show = (names) => {
  live.nodes.value = new Map(names.map((name) => [name, { labels: {} }]));
  live.links.value = new Map(given.links.filter((ends) => ends.every((end) => names.includes(end)))
    .map(([src, dst]) => [`${src}>${dst}`, { src, dst }]));
  live.pictureAt.value = "now";
};
const settled = (names) => new Promise((done) => {
  const look = () => {
    if (names.every((name) => places.value.has(name))) done();
    else setTimeout(look, 20);
  };
  look();
});
saved.value = new Map();
for (const { page, names } of given.visits) {
  places.value = new Map();
  show(names);
  if (page === "job") {
    await new Promise((done) => {
      const end = followPlaces(() => setTimeout(() => { end(); done(); }));
    });
    continue;
  }
  const end = beginPlaces(page === "map");
  await settled(names);
  end();
}
return [JSON.parse(localStorage.getItem("ces.map") ?? "{}"), Object.fromEntries(places.value)];
"""


def test_which_page_was_opened_first_moves_nothing(ui: Modules) -> None:
    def after(*visits: tuple[str, list[str]]) -> list[Any]:
        asked = [{"page": page, "names": names} for page, names in visits]
        kept: list[Any] = ui.run(PAGES, links=LINKS, visits=asked)
        return kept

    kept, shown = after(("map", NAMES))
    assert set(kept) == set(shown) == set(NAMES)
    assert after(("job", NAMES))[0] == kept
    fewer = NAMES[4:]
    assert after(("replay", fewer))[0] == {}, "a past is not kept"
    assert after(("replay", fewer), ("map", NAMES))[0] == kept
    then = after(("map", NAMES), ("replay", fewer))
    assert then[0] == kept
    assert all(then[1][name] == shown[name] for name in fewer), "in the past, nodes lie where they lie now"
