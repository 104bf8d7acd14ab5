"""A test that does not run is named, and one that should have run fails the run."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import skips

TESTS = Path(__file__).parent
MODULES = sorted(TESTS.rglob("test_*.py"))


# Each with the code and the words with which a run on it must end.
RUNS = {
    "passes": ("def test_it(): pass", 0, "1 passed"),
    "no name": ("from rskc import no_such_name\ndef test_it(): pass", 2, "cannot import name"),
    "no package": ("import no_such_package\ndef test_it(): pass", 2, "No module named"),
    "skipped test": (
        "import pytest\ndef test_it(): pytest.skip('lazy')",
        1,
        "tests/skips.py does not list",
    ),
    "skipped module": (
        "import pytest\npytest.importorskip('nowhere')",
        5,
        "tests/skips.py does not list",
    ),
    "optional package": (
        "import skips\nx = skips.Optional('nowhere')\ndef test_it(): pass",
        0,
        "1 passed",
    ),
    "without its packages": (
        "import no_such_package",
        5,  # no tests, and nothing worse
        "needs anndata, which is not installed",
    ),
}
# Runs pytest with the settings of this package on one module after another: importing rskc
# anew for each would take most of the time. The modules of its tests are imported anew.
RUNNER = """
import contextlib, io, json, sys
import pytest
settings, *modules = sys.argv[1:]
found = []
for module in modules:
    for name in ("conftest", "skips", "browsing", "nothing_installed"):
        sys.modules.pop(name, None)
    given = ["-c", settings, "-p", "conftest", "-p", "no:cacheprovider", module]
    given += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # plugins are imported once
    if module.endswith("test_anndata.py"):
        given += ["-p", "nothing_installed"]
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        code = pytest.main(given)
    found.append((int(code), said.getvalue()))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The exit code and the output of each of RUNS."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "nothing_installed.py").write_text("import skips\nskips.missing = list")
    modules = []
    for number, (name, (text, _, _)) in enumerate(RUNS.items()):
        (folder / str(number)).mkdir()
        listed = name == "without its packages"
        module = folder / str(number) / ("test_anndata.py" if listed else "test_one.py")
        module.write_text(text)
        modules.append(module)
    # The workers of pytest-xdist leave variables that tell pytest that it is one of them.
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != "RSKC_EXTRAS" and not name.startswith("PYTEST_")
    }
    paths = {"PYTHONPATH": os.pathsep.join([str(folder), str(TESTS)])}
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, TESTS.parent / "pyproject.toml", *modules],
        env=inherited | paths,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return dict(zip(RUNS, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("name", RUNS)
def test_what_does_not_run_is_named_or_fails_the_run(runs, name):
    code, output = runs[name]
    _, expected, said = RUNS[name]
    assert said in output
    assert code == expected


def test_the_list_names_modules_that_are_there():
    assert skips.NEEDS.keys() <= {module.name for module in MODULES}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_optional_packages_of_a_module_are_listed(module):
    """As far as it imports them itself, at its top."""
    imported = set()
    for node in ast.parse(module.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert imported & skips.PACKAGES <= set(skips.NEEDS.get(module.name, ()))


@pytest.mark.parametrize("extras", ["all", "none", None])
def test_an_environment_that_is_not_as_asked_for_is_refused(monkeypatch, extras):
    for lacking in (set(), {"polars"}, skips.PACKAGES):
        monkeypatch.setattr(skips, "missing", lambda names, lacking=lacking: lacking & set(names))
        wrong = skips.wrong_environment(extras)
        expected = {"all": bool(lacking), "none": lacking != skips.PACKAGES, None: False}
        assert bool(wrong) is expected[extras]
        assert not wrong or "polars" in wrong or extras == "none"


def test_no_clock_decides_a_test():
    """A loaded machine is slow; ``counting`` counts work, ``benchmarks`` measure time."""
    clock = "perf_" + "counter"
    assert not [module.name for module in MODULES if clock in module.read_text("utf-8")]
