"""The pages of the documentation: their Python blocks run, and print what the pages say they do.

Blocks of a page marked ``python`` are run in order, in one namespace and an empty folder. A block
marked ``output`` is what the one before it prints. Others, such as ``bash``, are not run.
"""

import contextlib
import io
import re
import sys
import warnings
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path
from typing import NamedTuple

import pytest

from rskc import SmallClusterWarning
from rskc.versions import environment

FOLDER = Path(__file__).parent.parent / "docs"
README = FOLDER.parent / "README.md"
NAMES = ["index", "tutorial", "choosing", "coming-from-rskc", "benchmarks"]
PAGES = [
    README,
    *(FOLDER / f"{name}.md" for name in NAMES),
    *sorted((FOLDER / "howto").glob("*.md")),
]
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
EXTRAS = {"matplotlib", "jinja2", "vl_convert", "anndata", "polars", "torch", "dask"}
# Searches that take long, and the same with fewer repeats: what these find is not printed.
_GRID = "n_clusters=[2, 3], n_features=[10, 100], trims=[0], n_splits=1, n_jobs=1"
SHORTER = {
    "rskc.explore(X)": f"rskc.explore(X, {_GRID})",
    "rskc.explore(data.data)": f"rskc.explore(data.data, {_GRID})",
    "Stability(RobustSparseKMeans(), ": "Stability(RobustSparseKMeans(), [2, 3, 4], n_splits=2, ",
    "GapL1(model, ": "GapL1(model, n_permutations=3, n_jobs=1, ",
    "Clest(model, range(2, 7), ": "Clest(model, [2, 3], n_splits=3, n_references=3, ",
    "Clest(model, checkpoint": "Clest(model, [2, 3], n_splits=3, n_references=3, checkpoint",
}
# Numbers are compared where the pages were written; rounding may move the last digit elsewhere.
SAME_NUMBERS = sys.platform == "linux" and environment()["passes"] == "compiled"


class Block(NamedTuple):
    kind: str
    code: str
    line: int


def blocks_of(page):
    text = page.read_text("utf-8")
    for match in FENCE.finditer(text):
        indent, kind, code = match.groups()
        code = re.sub(f"^{indent}", "", code, flags=re.MULTILINE)
        yield Block(kind, code, text.count("\n", 0, match.start(3)) + 1)


def run(block, page, names):
    printed, code = io.StringIO(), block.code
    for long, short in SHORTER.items():
        code = code.replace(long, short)
    source = "\n" * (block.line - 1) + code  # so that errors name the line of the page
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(source, str(page), "exec"), names)
    except ImportError as error:
        missing = {error.name, getattr(error.__cause__, "name", None)} & EXTRAS
        if not missing:
            raise
        pytest.skip(f"needs {', '.join(missing)}, which is not installed")
    return printed.getvalue()


def test_there_are_pages_with_code():
    assert len(PAGES) >= 9
    blocks = [block.code for page in PAGES for block in blocks_of(page) if block.kind == "python"]
    assert len(blocks) >= 25
    assert all(any(search in code for code in blocks) for search in SHORTER)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed = {"__name__": "page"}, ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallClusterWarning)
        for block in blocks_of(page):
            if block.kind == "python":
                printed = run(block, page, names)
            elif block.kind == "output" and SAME_NUMBERS:
                same = OutputChecker().check_output(
                    block.code, printed, ELLIPSIS | NORMALIZE_WHITESPACE
                )
                assert same, f"{page.name}:{block.line} prints\n{printed}"


def test_the_readme_takes_a_minute():
    text = README.read_text("utf-8")
    assert len(text.splitlines()) <= 110
    links = re.findall(r"\]\((?!http)([^)#]+)", text)
    assert len(links) >= 10
    assert all((README.parent / link).exists() for link in links)


def test_every_table_of_the_benchmarks_has_a_command_that_is_there():
    text = (FOLDER / "benchmarks.md").read_text("utf-8")
    parts = re.split(r"\n\|(?:-+\|)+\n", text)  # each but the last ends in the head of a table
    assert len(parts) >= 12
    for before in parts[:-1]:
        (_, command, names) = before.rpartition("make bench ARGS=")
        assert command
        module, _, _ = names.split()[0].strip('"').partition(".")
        assert (FOLDER.parent / "benchmarks" / f"{module}.py").exists()


def test_the_way_through_the_house_names_files_that_are_there():
    """Folders end in a slash, files in .py or .pyx; the names of examples are made up."""
    page = (FOLDER / "contributing.md").read_text("utf-8")
    named = set(re.findall(r"`([\w/]+(?:\.pyx?|/))`", page)) - {"examples/plot_something.py"}
    assert len(named) > 40
    missing = [
        n
        for n in named
        if not any((FOLDER.parent / f / n).exists() for f in ("src/rskc", ".", "tests"))
    ]
    assert not missing


def test_every_promise_names_a_test_that_exists():
    named = re.findall(r"`tests/([\w/]+\.py)::(\w+)`", (FOLDER / "promises.md").read_text("utf-8"))
    assert len(named) > 20
    texts = {name: (Path(__file__).parent / name).read_text("utf-8") for name, _ in named}
    assert not [test for name, test in named if f"def {test}(" not in texts[name]]


# What the manual of RSKC 2.4.2 lists.
RSKC = (
    "RSKC Clest revisedsil CER Sensitivity RSKC.trimkmeans RSKC.trimkmeans.missing showbitmap "
    "showDigit summary print optd DutchUtility DBWorld bitmapMat bitmapLab"
)


def test_everything_in_rskc_has_a_place_here():
    text = (FOLDER / "coming-from-rskc.md").read_text("utf-8")
    known = set(re.findall(r"[A-Za-z]\w*(?:\.[a-z]\w*)*", " ".join(re.findall("`(.*?)`", text))))
    assert set(RSKC.split()) <= known


def test_the_readme_does_not_send_people_to_a_score_that_misleads():
    """With ``score``, a grid picks 5 clusters of three."""
    text = " ".join(README.read_text("utf-8").split())
    assert "scikit-learn's `GridSearchCV` cannot choose K" in text
