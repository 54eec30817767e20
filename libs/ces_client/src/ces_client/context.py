"""Which manager to talk to, and with what token: ``CES_URL`` and ``CES_TOKEN``, else the context file.

``ces up`` and ``ces login`` each add a context to the file under the cluster's name; one of them is the current one.
The file holds secrets, so only its owner may read it.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from ces_client.errors import BadInput, bad_field
from ces_client.trust import check_encrypted, says_insecure

NO_CONTEXT_REMEDY = "start a local cluster with `ces up`, log in with `ces login URL`, or set CES_URL and CES_TOKEN"


@dataclass(frozen=True)
class Context:
    """``ca``: a file with the certificate authority of an https URL; None means the system's. ``state``: the folder of
    a local cluster's files; None for any other."""

    url: str
    token: str | None = None
    ca: str | None = None
    state: str | None = None


@dataclass
class Contexts:
    """What the context file holds: every known cluster by name, and the current one's name (None: none is chosen)."""

    current: str | None = None
    known: dict[str, Context] = field(default_factory=dict)

    def get(self, name: str) -> Context:
        """Raises BadInput, which names similar ones."""
        if name in self.known:
            return self.known[name]
        near = difflib.get_close_matches(name, self.known, n=3) or sorted(self.known)
        remedy = f"known are {', '.join(near)}; `ces clusters` lists all" if near else NO_CONTEXT_REMEDY
        raise bad_field(f"No cluster is known as {name}", "cluster", "there is none of that name", remedy)


def context_path(environment: Mapping[str, str] = os.environ) -> Path:
    """``CES_CONTEXT``, else ``context.json`` in CES's folder of the user's configuration."""
    named = environment.get("CES_CONTEXT")
    if named:
        return Path(named).expanduser()
    base = environment.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "ces" / "context.json"


def load_context(environment: Mapping[str, str] = os.environ, *, cluster: str | None = None) -> Context:
    """The context in force: that of ``cluster`` if it is named, else by the environment, else the current one. Raises
    BadInput where there is none or the file cannot be used.

    The file's tokens go to the file's URLs only: another ``CES_URL`` must bring its own ``CES_TOKEN``.
    """
    if cluster is not None:
        return read_contexts(environment).get(cluster)
    url, token = environment.get("CES_URL", "").strip(), environment.get("CES_TOKEN", "").strip()
    try:
        contexts = read_contexts(environment)
    except BadInput:
        if not (url and token):
            raise
        contexts = Contexts()
    if url:
        by_current = sorted(contexts.known, key=lambda name: name != contexts.current)
        same = (contexts.known[name] for name in by_current if contexts.known[name].url.rstrip("/") == url.rstrip("/"))
        known = next(same, None)
        if known is None:
            check_encrypted(
                url, says_insecure(environment), "use https:// in CES_URL, or set CES_INSECURE=true inside a VPN"
            )
        return Context(url, token or (known.token if known else None), known.ca if known else None)
    if contexts.current is not None:
        saved = contexts.known[contexts.current]
        return Context(saved.url, token or saved.token, saved.ca, saved.state)
    if contexts.known:
        remedy = f"choose one with `ces use NAME` or --cluster: {', '.join(sorted(contexts.known))}"
        raise bad_field("No cluster is chosen", "cluster", "the one that was current is gone", remedy)
    raise bad_field("No manager is known", "CES_URL", "neither CES_URL nor a context file", NO_CONTEXT_REMEDY)


def save_context(context: Context, path: Path | None = None, *, name: str | None = None) -> Path:
    """Add a context to the file, or replace the one of its name (by default the URL's host and port), and make it the
    current one; returns the file's path."""
    path = path or context_path()
    name = name or urlsplit(context.url).netloc or context.url
    try:
        contexts = _read(path)
    except BadInput:
        contexts = Contexts()  # a file that cannot be read is of no use to anybody
    contexts.known[name] = context
    contexts.current = name
    write_contexts(contexts, path)
    return path


def use_context(name: str) -> Context:
    """Make a known cluster the current one. Raises BadInput."""
    contexts = read_contexts()
    context = contexts.get(name)
    contexts.current = name
    write_contexts(contexts, context_path())
    return context


def forget_token(token: str) -> None:
    """Remove every context with this token; the file goes with the last one. No other becomes the current one, so that
    no command goes to a cluster that nobody chose. Raises BadInput where the file cannot be used."""
    contexts = read_contexts()
    known = {name: each for name, each in contexts.known.items() if each.token != token}
    if known == contexts.known:
        return
    current = contexts.current if contexts.current in known else None
    write_contexts(Contexts(current, known), context_path())


def read_contexts(environment: Mapping[str, str] = os.environ) -> Contexts:
    """Raises BadInput where the file cannot be used; one that is missing holds none."""
    return _read(context_path(environment))


def write_contexts(contexts: Contexts, path: Path) -> None:
    """Write the file, readable by its owner only; without a context there is no file."""
    if not contexts.known:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = {name: {k: v for k, v in asdict(each).items() if v is not None} for name, each in contexts.known.items()}
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"current": contexts.current, "contexts": known}, file, indent=2)
        file.write("\n")
    fresh.replace(path)


def _read(path: Path) -> Contexts:
    try:
        content = json.loads(path.read_text())
        if "url" in content:  # a file with a single context, as it was written before there could be several
            context = _context(content)
            name = urlsplit(context.url).netloc or context.url
            return Contexts(name, {name: context})
        known = {name: _context(each) for name, each in content["contexts"].items()}
        current = content.get("current")
        return Contexts(current if current in known else None, known)
    except FileNotFoundError:
        return Contexts()
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise bad_field(
            f"The context file {path} cannot be used", "context", str(error), "write a new one with `ces login URL`"
        ) from error


def _context(content: dict[str, str]) -> Context:
    return Context(**{key: content[key] for key in ("url", "token", "ca", "state") if key in content})
