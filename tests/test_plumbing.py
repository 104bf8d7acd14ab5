"""The house rules: what importing loads, which way imports point, and what the versions say."""

import ast
import importlib.metadata
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


def python_files():
    return sorted(SOURCE.rglob("*.py"))


def unit(path):
    """The module or subpackage directly below rskc that a file belongs to."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def absolute_names(node, path):
    """The dotted names that an import statement may refer to."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    package = ["rskc", *path.relative_to(SOURCE).parent.parts]
    base = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join([*base, *filter(None, [node.module])])
    return [f"{module}.{alias.name}" for alias in node.names]


def names_in(tree, path):
    """The dotted names of rskc that the code of a file imports."""
    imports = (ast.Import, ast.ImportFrom)
    nodes = [node for node in ast.walk(tree) if isinstance(node, imports)]
    names = {name for node in nodes for name in absolute_names(node, path)}
    return sorted(name for name in names if name.split(".")[0] == "rskc")


def imported_names(path):
    """The dotted names of rskc that a file imports, at its top or inside a function."""
    return [name.split(".") for name in names_in(ast.parse(path.read_text("utf-8")), path)]


def needed_modules(path, known):
    """The known modules that a file imports where it runs; a package's own file is left out."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING":
            node.body = []
    names = [name.split(".") for name in names_in(tree, path)]
    paths = {".".join(name[:end]) for name in names for end in range(2, len(name) + 1)}
    return paths & known.keys()


def is_name_of_facade(name):
    """Whether a name such as rskc.__version__ is one of the package itself, and no module."""
    return len(name) == 1 or (name[1] not in HEIGHT and name[1] in dir(rskc))


def may_import(importer, imported):
    if importer in (imported, FACADE) or imported == FACADE:
        return True
    return imported in HEIGHT and HEIGHT[imported] < HEIGHT[importer]


def crosses_privately(importer, name):
    """Whether a dotted name is private, as a whole or in part, and of another package."""
    return name[1] != importer and any(part.startswith("_") for part in name[1:])


def test_every_module_has_a_height():
    units = {unit(path) for path in python_files()} - {FACADE}
    assert units <= HEIGHT.keys()


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_downwards(path):
    units = {FACADE if is_name_of_facade(name) else name[1] for name in imported_names(path)}
    upwards = {name for name in units if not may_import(unit(path), name)}
    assert not upwards, f"{unit(path)} must not import {sorted(upwards)}"


def test_modules_do_not_import_each_other_in_circles():
    known = {
        ".".join(["rskc", *path.relative_to(SOURCE).with_suffix("").parts]): path
        for path in python_files()
    }
    needs = {module: needed_modules(path, known) - {module} for module, path in known.items()}
    assert list(TopologicalSorter(needs).static_order())


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_private_name_crosses_the_border_of_a_package(path):
    names = [name for name in imported_names(path) if not is_name_of_facade(name)]
    private = [".".join(name) for name in names if crosses_privately(unit(path), name)]
    assert not private, f"{unit(path)} must not import {private}"


def heavy_modules_after(statement):
    code = f"import sys; {statement}; print(*(name for name in {HEAVY} if name in sys.modules))"
    command = [sys.executable, "-c", code]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_importing_loads_nothing_heavy_beyond_scikit_learn():
    theirs = heavy_modules_after("import sklearn.base, sklearn.utils.validation")
    assert heavy_modules_after("import rskc") <= theirs


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


def test_version_is_that_of_the_metadata():
    assert rskc.__version__ == importlib.metadata.version("rskc")


def test_changelog_knows_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## [{rskc.__version__}]" in changelog or "## [Unreleased]" in changelog


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("pyproject.toml", 'version = "{}" '),
        ("CITATION.cff", "version: {}\n"),
        ("conda/recipe.yaml", 'version: "{}"\n'),
    ],
)
def test_every_file_that_names_the_version_names_the_same(file, line):
    assert line.format(rskc.__version__) in (ROOT / file).read_text("utf-8")


def test_python_without_the_gil_stays_without_it():
    """An extension that does not say that it can do without the GIL switches it on."""
    code = """if True:
        import sysconfig, rskc.engines
        from rskc.versions import has_gil
        print(has_gil() == (not sysconfig.get_config_var("Py_GIL_DISABLED")))
    """
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "True\n"


def test_importing_is_quick_because_scikit_learn_waits():
    code = "import sys, rskc; print('sklearn' in sys.modules, 'RobustSparseKMeans' in dir(rskc))"
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.split() == ["False", "True"]
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
    assert subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS]).returncode == 0
