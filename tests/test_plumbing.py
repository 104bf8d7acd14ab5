"""The house rules: what importing loads, which way imports point, and what the versions say."""

import ast
import importlib.metadata
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rskc

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "rskc"
HEAVY = ("matplotlib", "dask", "torch", "polars", "pandas", "typer")

# The ladder. A module or subpackage imports what stands lower, and nothing beside it or above; each
# one is named here, so that a new one has to be given its height.
LAYERS = (
    {"utils"},
    {"exceptions"},
    {"engines"},
    {"solver", "versions"},
    {"inputs"},
    {"categories", "preprocessing"},
    {"datasets", "metrics"},
    {"model"},
    {"comparison", "markers"},
    {"estimator"},
    {"pictures", "selection"},
    {"displays", "planning"},
    {"anndata", "explorer", "files", "report"},
    {"cli"},
    {"__main__"},
)
HEIGHT = {module: height for height, layer in enumerate(LAYERS) for module in layer}
FACADE = "__init__"
PYTHON_FILES = sorted(SOURCE.rglob("*.py"))


def unit(path):
    """The module or subpackage directly below rskc that a file belongs to."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_names(path, only_running=False):
    """The dotted names of rskc that a file imports, at its top or inside a function.

    ``only_running`` leaves out what is imported for the types only.
    """
    names, tree = set(), ast.parse(path.read_text("utf-8"))
    for node in tree.body if only_running else []:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports by {node.level} dots"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return sorted(name.split(".") for name in names if name.split(".")[0] == "rskc")


def is_name_of_facade(name):
    """Whether a name such as rskc.__version__ is one of the package itself, and no module."""
    return len(name) == 1 or (name[1] not in HEIGHT and name[1] in dir(rskc))


def may_import(importer, imported):
    if importer in (imported, FACADE):
        return True
    return imported in HEIGHT and HEIGHT[imported] < HEIGHT[importer]


def crosses_privately(importer, name):
    """Whether a dotted name is private, as a whole or in part, and of another package."""
    return name[1] != importer and any(part.startswith("_") for part in name[1:])


def test_every_module_has_a_height():
    units = {unit(path) for path in PYTHON_FILES} - {FACADE}
    assert units <= HEIGHT.keys()


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_downwards_and_no_private_name_leaves_its_package(path):
    names = [name for name in imported_names(path) if not is_name_of_facade(name)]
    upwards = {name[1] for name in names if not may_import(unit(path), name[1])}
    private = {".".join(name) for name in names if crosses_privately(unit(path), name)}
    assert not upwards | private, f"{unit(path)} must not import {sorted(upwards | private)}"


def test_modules_do_not_import_each_other_in_circles():
    """As far as they run; the files of packages themselves are left out."""
    modules = {
        ".".join(["rskc", *path.relative_to(SOURCE).with_suffix("").parts]): path
        for path in PYTHON_FILES
    }
    needs = {}
    for module, path in modules.items():
        names = imported_names(path, only_running=True)
        paths = {".".join(name[:end]) for name in names for end in range(2, len(name) + 1)}
        needs[module] = (paths & modules.keys()) - {module}
    assert list(TopologicalSorter(needs).static_order())


def printed(code):
    """What a program prints, word by word."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def heavy_modules_after(statement):
    names = f"(name for name in {HEAVY} if name in sys.modules)"
    return set(printed(f"import sys; {statement}; print(*{names})"))


def test_importing_loads_nothing_heavy_beyond_scikit_learn():
    theirs = heavy_modules_after("import sklearn.base, sklearn.utils.validation")
    assert heavy_modules_after("import rskc") <= theirs
    assert "matplotlib" not in heavy_modules_after("import rskc.displays")


def test_show_versions_says_what_a_bug_report_needs(capsys):
    rskc.show_versions()
    lines = dict(line.strip().split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["rskc"] == rskc.__version__
    assert lines["passes"] in ("compiled", "NumPy")
    assert lines["OpenMP"] in ("yes", "no")
    assert "CPUs" in lines["threads"]
    assert {"BLAS", "python", "platform"} <= lines.keys()
    for name in ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl"):
        assert lines[name] == importlib.metadata.version(name)


def test_every_file_that_names_the_version_names_the_same():
    version = rskc.__version__
    assert version == importlib.metadata.version("rskc")
    for file, line in (
        ("pyproject.toml", f'version = "{version}" '),
        ("CITATION.cff", f"version: {version}\n"),
        ("conda/recipe.yaml", f'version: "{version}"\n'),
        ("CHANGELOG.md", rf"## \[({re.escape(version)}|Unreleased)\]"),
    ):
        text = (ROOT / file).read_text("utf-8")
        assert line in text or re.search(line, text), file


def test_python_without_the_gil_stays_without_it():
    """An extension that does not say that it can do without the GIL switches it on."""
    code = """if True:
        import sys, sysconfig, rskc.engines
        has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
        print(has_gil == (not sysconfig.get_config_var("Py_GIL_DISABLED")))
    """
    assert printed(code) == ["True"]


def test_importing_is_quick_because_scikit_learn_waits():
    code = "import sys, rskc; print('sklearn' in sys.modules, 'RobustSparseKMeans' in dir(rskc))"
    assert printed(code) == ["False", "True"]
    with pytest.raises(AttributeError, match="no attribute 'KMeans'"):
        rskc.KMeans


WITHOUT_EXTRAS = """
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("array_api_compat", "torch", "dask", "distributed", "cupy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
import numpy as np
from rskc import RobustSparseKMeans
X = np.random.default_rng(0).normal(size=(60, 4))
X[:30] += 5
model = RobustSparseKMeans(2, random_state=0).fit(X)
assert (model.predict(X) == model.labels_).all()
model.transform(X), model.score(X), model.is_outlier(X), model.get_support()
model.cases_frame(X), model.features_frame(), model.markers_frame(X), model.summary()
"""


def test_the_estimator_works_without_any_extra():
    assert printed(WITHOUT_EXTRAS) == []
