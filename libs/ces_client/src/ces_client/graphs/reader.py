"""Which format a file is in, and the graph that it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ces_client.errors import BadInput, bad_field
from ces_client.files import checked, explained, parsed
from ces_client.graphs.mubench import WorkModel
from ces_client.graphs.onnx_model import read_onnx
from ces_client.graphs.wfcommons import WfCommonsFile, job_name
from ces_common.documents import read_json, read_yaml
from ces_common.graphfile import ApplicationGraph, GraphFile

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
        if document and all(isinstance(each, dict) and "external_services" in each for each in document.values()):
            # first: one of them may be called graph or workflow
            return checked(path, document, WorkModel).graph(job_name(path.stem), rate)
        if "graph" in document:
            return checked(path, document, GraphFile).graph
        if "workflow" in document:
            if isinstance(document["workflow"], dict) and "specification" not in document["workflow"]:
                problem = f"it is of WfFormat {document.get('schemaVersion')}"
                raise bad_field(title, "schemaVersion", problem, "convert it to 1.5 with WfCommons's own tool")
            return checked(path, document, WfCommonsFile).graph()
    except ValidationError as error:  # of the graph that was made of it
        raise BadInput(title, explained(error, ApplicationGraph)) from error
    except (ValueError, OverflowError) as error:
        raise bad_field(title, "file", str(error), "correct the file") from error
    raise bad_field(title, "file", "it is none of the formats that are known", f"give {FORMATS}")


def _document(path: Path) -> dict[str, Any]:
    if path.suffix == ".json":
        return parsed(path, read_json, LARGEST_GRAPH, "give a smaller one")
    return parsed(path, lambda text: read_yaml(text, aliases=False), LARGEST_YAML, "write it as JSON, in a .json file")
