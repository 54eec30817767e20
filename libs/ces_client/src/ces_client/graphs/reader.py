"""Which format a file is in, and the graph that it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ces_client.errors import bad_field
from ces_client.files import checked
from ces_client.graphs.graphfile import ApplicationGraph, GraphFile
from ces_client.graphs.mubench import WorkModel
from ces_client.graphs.onnx_model import read_onnx
from ces_client.graphs.wfcommons import WfCommonsFile, job_name
from ces_common.documents import read_json, read_yaml

LARGEST_GRAPH = 16 * 2**20  # bytes of JSON
LARGEST_YAML = 2**20  # its reader takes a hundred times as long
FORMATS = "a file with `graph:`, a WfCommons instance of WfFormat 1.5, a muBench work model or an ONNX model"


def read_graph(path: Path, rate: float) -> ApplicationGraph:
    """The graph in a file. ``rate``: requests in a second, for formats that do not say. Raises BadInput."""
    if path.suffix == ".onnx":
        return read_onnx(path, rate)
    document = _document(path)
    title = f"{path} is not valid"
    try:
        if "graph" in document:
            return checked(path, document, GraphFile).graph
        if "workflow" in document:
            if "specification" not in (document["workflow"] or {}):
                problem = f"it is of WfFormat {document.get('schemaVersion')}"
                raise bad_field(title, "schemaVersion", problem, "convert it to 1.5 with WfCommons's own tool")
            return checked(path, document, WfCommonsFile).graph()
        if document and all(isinstance(each, dict) and "external_services" in each for each in document.values()):
            return checked(path, document, WorkModel).graph(job_name(path.stem), rate)
    except ValidationError as error:  # of the graph that was made of it
        first = error.errors(include_url=False)[0]
        raise bad_field(title, ".".join(map(str, first["loc"])) or "file", first["msg"], "correct the file") from error
    except ValueError as error:
        raise bad_field(title, "file", str(error), "correct the file") from error
    raise bad_field(title, "file", "it is none of the formats that are known", f"give {FORMATS}")


def _document(path: Path) -> dict[str, Any]:
    title = f"{path} cannot be read"
    as_json = path.suffix == ".json"
    largest = LARGEST_GRAPH if as_json else LARGEST_YAML
    try:
        if path.stat().st_size > largest:
            problem = f"it is larger than {largest // 2**20} MiB"
            raise bad_field(
                title, "file", problem, "give a smaller one" if as_json else "write it as JSON, in a .json file"
            )
        text = path.read_text(encoding="utf-8")
        document = read_json(text) if as_json else read_yaml(text, aliases=False)
    except OSError as error:
        raise bad_field(title, "file", error.strerror or str(error), "check the path and its permissions") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        what = getattr(error, "problem", None) or str(error)
        raise bad_field(title, "file", f"it is no {'JSON' if as_json else 'YAML'}: {what}", "correct it") from error
    if not isinstance(document, dict):
        raise bad_field(title, "file", "it holds no fields with values", f"give {FORMATS}")
    return document
