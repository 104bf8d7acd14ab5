"""A test that does not run is named, and one that should have run fails the run."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import skips

TESTS = Path(__file__).parent
MODULES = sorted(TESTS.glob("test_*.py"))


def run_pytest(module, text, **environment):
    """Run pytest with the settings of this package on a module of its own."""
    module.write_text(text)
    inherited = {name: value for name, value in os.environ.items() if name != "RSKC_EXTRAS"}
    command = [sys.executable, "-m", "pytest", "-c", TESTS.parent / "pyproject.toml"]
    done = subprocess.run(
        [*command, "-p", "conftest", "-p", "no:cacheprovider", module],
        env=inherited | {"PYTHONPATH": str(TESTS)} | environment,
        cwd=module.parent,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("def test_it(): pass", 0, "1 passed"),
        ("from rskc import no_such_name\ndef test_it(): pass", 2, "cannot import name"),
        ("import no_such_package\ndef test_it(): pass", 2, "No module named"),
        ("import pytest\ndef test_it(): pytest.skip('lazy')", 1, "tests/skips.py does not list"),
        ("import pytest\npytest.importorskip('nowhere')", 5, "tests/skips.py does not list"),
        ("import skips\nx = skips.Optional('nowhere')\ndef test_it(): pass", 0, "1 passed"),
    ],
    ids=["passes", "no name", "no package", "skipped test", "skipped module", "optional package"],
)
def test_what_does_not_run_fails_the_run(tmp_path, text, code, said):
    found, output = run_pytest(tmp_path / "test_one.py", text)
    assert said in output
    assert found == code


def test_a_module_without_its_packages_is_skipped_by_name(tmp_path):
    (tmp_path / "nothing_installed.py").write_text("import skips\nskips.missing = list")
    found, output = run_pytest(
        tmp_path / "test_anndata.py",
        "import no_such_package",
        PYTEST_ADDOPTS="-p nothing_installed",
        PYTHONPATH=os.pathsep.join([str(tmp_path), str(TESTS)]),
    )
    assert "needs anndata, which is not installed" in output
    assert found == pytest.ExitCode.NO_TESTS_COLLECTED  # and nothing worse


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
