"""From the summary to the page, and the page to a file or a notebook."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rskc.pictures.palette import DARK_PALETTE, PALETTE
from rskc.report._facts import TEMPLATES, needed, templates
from rskc.report._summary import summarize
from rskc.utils.atomic import atomic_write
from rskc.utils.webpage import Page, content_policy

VEGA_SNIPPET = "window.vegaEmbed = vegaEmbed;"


class Report(Page):
    """A fitted model, explained on one HTML page that needs no network.

    Parameters
    ----------
    summary : dict
        What the page says, as :func:`make_report` puts it together.

    Attributes
    ----------
    summary : dict
        Numbers and words of the page, fit for ``json.dumps``.
    html : str
        The page.
    """

    def __init__(self, summary: dict[str, Any]):
        self.summary, self.title = summary, summary["title"]
        self.html = render(summary)

    def __repr__(self) -> str:
        return f"<Report: {self.summary['headline']}>"


def make_report(
    model: Any,
    X: Any,
    *,
    searches: Any = (),
    labels: Any = None,
    case_names: Any = None,
    title: str | None = None,
    run: Mapping[str, Any] | None = None,
) -> Report:
    """Explain a fitted model on one HTML page.

    The page has a summary in plain words, interactive charts, tables of features and cases to be
    sorted, searched and downloaded, the settings, and advice where something looks doubtful. It is
    one file of 1 to 5 MB that opens without a network, on a phone, in print and in the dark. The
    same input gives the same page.

    Parameters
    ----------
    model : RobustSparseKMeans
        A fitted model.
    X : array-like or data frame of shape (n_samples, n_features)
        The data of the fit, as it was given to ``fit``.
    searches : Stability, Clest, GapL1, GridSearch or several of these, default=()
        What led to the settings: a section for each. Of a Stability search the page also says how
        sure clusters, cases and features are.
    labels : array-like of shape (n_samples,), default=None
        Known classes to compare the clusters with.
    case_names : array-like of shape (n_samples,), default=None
        Names of the cases; None for the index of the frame, or numbers.
    title : str, default=None
        Heading of the page.
    run : mapping, default=None
        What else is known of the run, to be shown: ``command``, ``file``, ``sha256``,
        ``standardization``, ``date`` or whatever; values are written as text. ``standardizer``,
        such as ``"RowStandardizer()"``, and ``reader``, such as ``"read_table('genes.csv')"``,
        become lines of the Python that repeats the run.

    Returns
    -------
    report : Report
        With ``html``, ``summary`` and ``save(path)``; shows itself in a notebook.

    Raises
    ------
    ImportError
        If jinja2 or vl-convert-python is not installed.
    ValueError
        If X is not the data of the fit, or names or labels do not fit it.

    Examples
    --------
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.datasets import make_simulation
    >>> from rskc.report import make_report
    >>> outlying = make_simulation(model=1, random_state=0)
    >>> model = RobustSparseKMeans(3, trim=1 / 60, l1_bound=6.2, random_state=0).fit(outlying.data)
    >>> make_report(model, outlying.data)
    <Report: 3 clusters of 60 cases; 49 of 500 features have weight, ...>
    """
    templates()  # what is not installed is missed before any work
    vega_script()
    parts = {"labels": labels, "case_names": case_names, "title": title, "run": run}
    return Report(summarize(model, X, searches=searches, **parts))


def render(summary: dict[str, Any]) -> str:
    """Make the page of a summary."""
    from markupsafe import Markup

    script = (TEMPLATES / "page.js").read_text("utf-8")
    curves = [search for search in summary["searches"] if search["table"]["rows"]]
    charts = [*summary["charts"].values(), *curves]
    template = templates().get_template("page.html")
    return template.render(
        summary=summary,
        curves=curves,
        drawn=[{name: chart[name] for name in ("id", "spec", "data")} for chart in charts],
        palettes=(PALETTE, DARK_PALETTE),
        policy=content_policy([vega_script(), script]),
        scripts=[Markup(vega_script()), Markup(script)],
    )


@cache
def vega_script() -> str:
    """Return the script that draws the charts: Vega, Vega-Lite and Vega-Embed in one, 0.9 MB.

    vl-convert takes two seconds to put it together, which is longer than most fits. So it is kept
    in the cache folder of the user, under the version it is of.
    """
    vl_convert = needed("vl_convert")
    home = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    folder = (Path(home) if home else Path.home() / ".cache") / "rskc"
    kept = folder / f"charts-{version('vl-convert-python')}.js"
    with suppress(OSError, UnicodeDecodeError):
        return kept.read_text("utf-8")
    script = vl_convert.javascript_bundle(VEGA_SNIPPET)
    # Nothing in a script may end its element; as it is written, both can only be inside of strings.
    script = script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    script = script.replace("\r\n", "\n")
    with suppress(OSError):  # a folder that cannot be written to costs two seconds each time
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(kept, "w") as file:
            file.write(script)
    return script
