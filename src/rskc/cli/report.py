"""``rskc report``: the page of a saved result."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from rskc.cli._app import command
from rskc.cli._options import RESULTS, Rereading, TableFile
from rskc.cli._results import Result, check_report, write_page
from rskc.cli._saved import check_no_file, open_model
from rskc.cli._scaling import Scaling
from rskc.cli._tables import Data, reread
from rskc.cli._voice import Voice

Saved = Annotated[
    Path,
    Argument(metavar="RESULT", help="Folder of a fit, or its model.rskc.", show_default=False),
]


@command("report", "rskc report iris-rskc iris.csv --out iris.html --title Iris")
def report(
    saved: Saved,
    table: TableFile,
    rereading: Rereading,
    voice: Voice,
    out: Annotated[
        Path, Option("--out", "-o", metavar="FILE", help="The page.", rich_help_panel=RESULTS)
    ] = Path("report.html"),
    title: Annotated[
        str | None, Option(metavar="TEXT", help="Heading of the page.", rich_help_panel=RESULTS)
    ] = None,
    force: Annotated[
        bool, Option("--force", help="Replace a page that is there.", rich_help_panel=RESULTS)
    ] = False,
) -> None:
    """Make the HTML page of a saved result and its table again.

    The page has no sections on searches, of which a model keeps nothing but the choice.
    """
    check_report(True)
    found = open_model(saved)
    check_no_file(out, force)
    result = _result(found, table, rereading, voice)
    with voice.busy("Writing the page"):
        write_page(out, result, title or found.extra.get("title"))
    for note in result.warnings:
        voice.note(note)
    voice.say_in_one_line(f"The page is in {out}: open it in a browser")
    voice.tell({"file": str(out), "warnings": result.warnings})


def _result(found: Any, path: Path, rereading: Rereading, voice: Voice) -> Result:
    extra, model = found.extra, found.model
    scaling = Scaling.from_extra(extra.get("scaling"), model.n_features_in_)
    data = reread(path, rereading.arguments(extra.get("reading", {})), scaling, voice)
    return Result(data, model, [], _doubts(extra, data), 0.0, _command(extra))


def _doubts(extra: dict[str, Any], data: Data) -> list[str]:
    known = extra.get("sha256")
    if known in (None, data.table.sha256):
        return []
    return [
        f"{data.table.path.name!r} is not, byte by byte, the file of the fit "
        f"({extra.get('file')!r}); the page is right only if the numbers are the same."
    ]


def _command(extra: dict[str, Any]) -> list[str]:
    command = extra.get("command", [])
    return shlex.split(command) if isinstance(command, str) else list(command)
