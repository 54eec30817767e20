"""Which manager to talk to, and with what token: ``CES_URL`` and ``CES_TOKEN``, else the context file.

The file is written by ``ces up`` and ``ces login``; it holds a secret, so only its owner may read it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ces_client.errors import bad_field

NO_CONTEXT_REMEDY = "start a local cluster with `ces up`, log in with `ces login URL`, or set CES_URL and CES_TOKEN"


@dataclass(frozen=True)
class Context:
    """``ca``: a file with the certificate authority of an https URL; None means the system's."""

    url: str
    token: str | None = None
    ca: str | None = None


def context_path(environment: Mapping[str, str] = os.environ) -> Path:
    """``CES_CONTEXT``, else ``context.json`` in CES's folder of the user's configuration."""
    named = environment.get("CES_CONTEXT")
    if named:
        return Path(named).expanduser()
    base = environment.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "ces" / "context.json"


def load_context(environment: Mapping[str, str] = os.environ) -> Context:
    """The context in force. Raises BadInput where there is none or the file cannot be used.

    The file's token goes to the file's URL only: another ``CES_URL`` must bring its own ``CES_TOKEN``.
    """
    url, token = environment.get("CES_URL", "").strip(), environment.get("CES_TOKEN", "").strip()
    saved = _read(context_path(environment)) if not (url and token) else None
    if url:
        known = saved if saved is not None and saved.url.rstrip("/") == url.rstrip("/") else None
        return Context(url, token or (known.token if known else None), known.ca if known else None)
    if saved is None:
        raise bad_field("No manager is known", "CES_URL", "neither CES_URL nor a context file", NO_CONTEXT_REMEDY)
    return Context(saved.url, token or saved.token, saved.ca)


def save_context(context: Context, path: Path | None = None) -> Path:
    """Write the context file, readable by its owner only; answers its path."""
    path = path or context_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({key: value for key, value in asdict(context).items() if value is not None}, file, indent=2)
        file.write("\n")
    fresh.replace(path)
    return path


def _read(path: Path) -> Context | None:
    try:
        content = json.loads(path.read_text())
        return Context(**{key: content[key] for key in ("url", "token", "ca") if key in content})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise bad_field(
            f"The context file {path} cannot be used", "context", str(error), "write it anew with `ces login URL`"
        ) from error
