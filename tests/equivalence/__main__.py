"""The command line: record, check, compare."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from equivalence import commits, recorder, times
from equivalence.parts import PARTS


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 1 where answers differ, 2 where there is nothing to compare with."""
    parser = argparse.ArgumentParser(prog="equivalence", description="does a change of the code change any answer?")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("record", "write questions and answers"), ("check", "ask again and compare")):
        command = commands.add_parser(name, help=about)
        command.add_argument("folder", type=Path)
        command.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all when left out")
    command = commands.add_parser("compare", help="record another commit, then check this tree against it")
    command.add_argument("commit")
    command.add_argument("parts", nargs="*", metavar="part")
    command.add_argument("--fresh", action="store_true", help="record again what is kept from an earlier comparison")
    command.add_argument("--no-times", dest="times", action="store_false", help="do not compare decision times")
    commands.add_parser("serve", help="measure decisions for compare").add_argument("folder", type=Path)
    asked = parser.parse_args(arguments)
    if asked.command == "serve":
        times.serve(asked.folder)
        return 0
    if unknown := {*asked.parts} - PARTS.keys():
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    parts = asked.parts or [*PARTS]
    try:
        match asked.command:
            case "record":
                recorder.record(asked.folder, parts)
                return 0
            case "check":
                return int(not recorder.check(asked.folder, parts))
        return int(not commits.compare(asked.commit, parts, fresh=asked.fresh, times=asked.times))
    except recorder.RecordError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
