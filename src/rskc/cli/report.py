"""``rskc report``: the page of a saved result."""

from __future__ import annotations

from rskc.cli._app import command
from rskc.cli._console import Console
from rskc.cli._options import ModelPath, Page, Rereading, TableFile
from rskc.cli._output import check_no_file, check_report, open_model, preparer_of, write_page
from rskc.cli._results import Result
from rskc.cli._tables import reread


@command("report", "rskc report iris-rskc iris.csv --out iris.html --title Iris")
def report(
    model: ModelPath, table: TableFile, rereading: Rereading, page: Page, console: Console
) -> None:
    """Make the HTML page of a saved result and its table again."""
    check_report(True)
    saved = open_model(model)
    out = page.out
    if out is None:
        out = (model if model.is_dir() else model.parent) / "report.html"
    check_no_file(out, page.force, table)
    extra = saved.extra
    data = reread(table, rereading.arguments(extra.get("reading", {})), preparer_of(saved), console)
    doubts = []
    if extra.get("sha256") not in (None, data.table.sha256):
        doubts = [
            f"{table.name!r} is not, byte by byte, the file of the fit ({extra.get('file')!r}); "
            "the page is right only if the numbers are the same."
        ]
    typed = list(extra.get("command", []))
    with console.busy("Writing the page"):
        kept = extra.get("searches")
        result = Result(data, saved.model, [], doubts, 0.0, typed, kept=kept)
        write_page(out, result, page.title or extra.get("title"))
    console.note(*doubts)
    console.print(f"The page is in {out}: open it in a browser", soft_wrap=True)
    console.print_json({"file": str(out), "warnings": doubts})
