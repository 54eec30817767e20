"""Names of images, and which of them a node allows. Names are compared in full, as an engine reads them: where one
names no registry it is Docker Hub, and there ``library`` where it names no namespace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

_HUB = "docker.io"
_HUBS = {"index.docker.io", "registry-1.docker.io"}
_WILD = "*?"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::\d{1,5})?"
_PART = r"[a-z0-9*?](?:[a-z0-9._*?-]*[a-z0-9*?])?"
_TAG = r"[A-Za-z0-9_*?][A-Za-z0-9_.*?-]{0,127}"
_NAME = re.compile(
    rf"(?:(?P<host>{_HOST})/)?(?P<path>{_PART}(?:/{_PART})*)(?::(?P<tag>{_TAG}))?(?:@(?P<digest>sha256:[0-9a-f]{{64}}))?"
)
_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
_LONGEST = 512  # characters


class BadName(ValueError):
    """It is no name of an image, or no pattern of names; the text says why."""


@dataclass(frozen=True)
class ImageName:
    """``parts``: of the repository's path. ``tag`` and ``digest`` as written; an engine that is given a digest ignores
    the tag."""

    registry: str
    parts: tuple[str, ...]
    tag: str | None
    digest: str | None


def parse_image(text: str) -> ImageName:
    """Raises BadName, also for an id: nothing in it says which image it is."""
    name = _parse(text)
    if any(wild in text for wild in _WILD):
        raise BadName(f"{text!r} is no name of an image: it holds a wildcard")
    return name


def parse_pattern(text: str) -> ImageName:
    """``*`` and ``?`` may stand in the path, within one part of it, and in the tag. Raises BadName."""
    return _parse(text)


def allows(pattern: ImageName, image: ImageName) -> bool:
    """A pattern without tag and digest allows all of its repository. One with a tag allows no digest, for which the
    engine would ignore the tag."""
    if (pattern.registry, len(pattern.parts)) != (image.registry, len(image.parts)):
        return False
    if not all(map(fnmatchcase, image.parts, pattern.parts)):
        return False
    if pattern.digest is not None:
        return image.digest == pattern.digest
    if pattern.tag is not None:
        return image.digest is None and fnmatchcase(image.tag or "latest", pattern.tag)
    return True


def allowed(image: ImageName, patterns: Sequence[ImageName]) -> bool:
    return any(allows(pattern, image) for pattern in patterns)


def explicit(text: str, name: ImageName) -> str:
    """The name to give to an engine, with a tag or digest: one without either it might take for the beginning of an
    id."""
    return f"{text}:latest" if name.tag is None and name.digest is None else text


def _parse(text: str) -> ImageName:
    found = _NAME.fullmatch(text) if len(text) <= _LONGEST and not _ID.fullmatch(text) else None
    if found is None:
        raise BadName(f"{text!r} is no name of an image: write [REGISTRY/]repository[:TAG][@sha256:DIGEST]")
    host, path = found["host"], found["path"]
    if host is not None and not _is_registry(host):
        host, path = None, f"{host}/{path}"
    registry = _HUB if host is None or host.lower() in _HUBS else host.lower()
    parts = tuple(path.split("/"))
    if host is None and len(parts) > 1 and _is_registry(parts[0]):
        raise BadName(f"{text!r}: {parts[0]} is no registry: write its name out, without wildcards")
    if registry == _HUB and len(parts) == 1:
        parts = ("library", *parts)
    return ImageName(registry, parts, found["tag"], found["digest"])


def _is_registry(first: str) -> bool:
    """Whether an engine takes the first part of a name for a registry."""
    return "." in first or ":" in first or first == "localhost" or first != first.lower()
