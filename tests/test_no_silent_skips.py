"""A test that does not run is named, and one that should have run fails the run."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import skips

TESTS = Path(__file__).parent
MODULES = sorted(TESTS.rglob("test_*.py"))


# Modules, the exit code of a run on them, and what it says.
RUNS = {
    "passes": (
        {
            "test_one.py": "import skips\nx = skips.Optional('nowhere')\ndef test_it(): pass",
            "test_anndata.py": "import no_such_package",  # of a module that lacks its packages
        },
        0,
        ["1 passed", "needs anndata, which is not installed"],
    ),
    "no package": ({"test_one.py": "import no_such_package"}, 2, ["No module named"]),
    "skips": (
        {
            "test_one.py": "import pytest\ndef test_it(): pytest.skip('lazy')",
            "test_two.py": "import pytest\npytest.importorskip('nowhere')",
        },
        1,
        ["tests/skips.py does not list", "::test_it: lazy", ": could not import 'nowhere'"],
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_what_does_not_run_is_named_or_fails_the_run(name, tmp_path):
    modules, code, said = RUNS[name]
    (tmp_path / "nothing_installed.py").write_text("import skips\nskips.missing = list")
    for module, text in modules.items():
        (tmp_path / module).write_text(text)
    # The workers of pytest-xdist leave variables that tell pytest that it is one of them.
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    env = env | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(TESTS)]), "RSKC_EXTRAS": ""}
    command = [sys.executable, "-m", "pytest", "-c", TESTS.parent / "pyproject.toml"]
    command += ["-p", "conftest", "-p", "nothing_installed", "-p", "no:cacheprovider", *modules]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert all(words in done.stdout + done.stderr for words in said), done.stdout
    assert done.returncode == code


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
