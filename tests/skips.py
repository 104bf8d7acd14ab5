"""The one list of what a run of the tests may leave out, and why.

A test module that imports an optional package stands in ``NEEDS``: where the package is missing,
the module is skipped and named. Every other module must be importable, or the run fails. A test
that is skipped for a reason that is not in ``REASONS`` fails the run as well.

``RSKC_EXTRAS=all`` makes a missing package an error, ``RSKC_EXTRAS=none`` one that is installed:
continuous integration runs both.
"""

import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import pytest

CLI = ("typer", "rich", "polars", "jinja2", "vl_convert")
DASK = ("dask", "distributed")
NEEDS: dict[str, tuple[str, ...]] = {
    "test_anndata.py": ("anndata",),
    "test_blocks.py": DASK,
    "test_blocks_cluster.py": DASK,
    "test_blocks_devices.py": DASK,
    "test_categories.py": (*CLI, *DASK, "psutil", "matplotlib"),
    "test_cli.py": (*CLI, *DASK, "psutil", "pyarrow"),
    "test_cli_dask.py": (*CLI, *DASK, "psutil", "pyarrow"),
    "test_cli_words.py": (*CLI, *DASK, "psutil", "pyarrow"),
    "test_columns.py": (*CLI, *DASK, "psutil", "pyarrow"),
    "test_device.py": ("array_api_compat", "array_api_strict", "matplotlib", "dask"),
    "test_displays.py": ("matplotlib",),
    "test_displays_selection.py": ("matplotlib",),
    "test_examples.py": ("matplotlib",),
    "test_explorer_browser.py": ("playwright",),
    "test_explorer_cli.py": CLI,
    "test_files.py": ("polars",),
    "test_groups.py": (*CLI, "psutil", "matplotlib"),
    "test_files_blocks.py": ("polars", "pyarrow"),
    "test_files_formats.py": ("polars", "pyarrow", "openpyxl", "python_calamine", "anndata"),
    "test_preparation.py": ("polars",),
    "test_report.py": ("jinja2", "vl_convert", "altair", "polars"),
    "test_pages.py": (*CLI, "playwright"),
    "test_report_cells.py": ("jinja2", "vl_convert"),
    "test_report_browser.py": ("jinja2", "vl_convert", "playwright"),
    "test_reproduce.py": ("polars", "matplotlib"),
    "test_runner.py": ("fcntl",),  # Windows has none
}
SYSTEM = {"fcntl"}  # of Python itself, on some systems
PACKAGES = {package for needed in NEEDS.values() for package in needed} - SYSTEM
REASONS = (
    r"needs .*, which is not installed",
    r"there is no CUDA device for (torch|cupy)",
    r"no chromium on the PATH|chromium does not start",
    r"the compiled passes are not built",
    r"needs AVX2 and FMA",
    r"signals|head|reads /proc|there are no pipes|there is no /dev/null",  # not on Windows
    r"limits of file sizes are of Unix|permissions (of Unix|and links of POSIX)",
    r"SCIPY_ARRAY_API is not set",  # a check of scikit-learn; test_device.py does more
    r"the order of cases changes the starts",  # a law that holds in most of the drawn examples
)


def missing(packages: Iterable[str]) -> list[str]:
    """Name those of the packages that are not installed."""
    return [package for package in packages if find_spec(package) is None]


def skip_without(*packages: str) -> None:
    """Skip a test or module whose packages are not installed."""
    if lacking := missing(packages):
        pytest.skip(f"needs {', '.join(lacking)}, which is not installed", allow_module_level=True)


def is_expected(reason: str) -> bool:
    """Whether a test may be skipped for this reason."""
    return any(re.match(pattern, reason) for pattern in REASONS)


def wrong_environment(extras: str | None) -> str:
    """Say what is wrong with the installed packages, if anything is."""
    lacking = set(missing(PACKAGES))
    if extras == "all" and lacking:
        return f"RSKC_EXTRAS=all, but {', '.join(sorted(lacking))} cannot be imported."
    if extras == "none" and lacking != PACKAGES:
        return f"RSKC_EXTRAS=none, but {', '.join(sorted(PACKAGES - lacking))} is installed."
    return ""


class Optional:
    """A package that is imported at its first use; where it is missing, that test is skipped."""

    def __init__(self, package: str):
        self.package = package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # pytest asks for __wrapped__, and would skip the whole module
            raise AttributeError(name)
        skip_without(self.package)
        return getattr(__import__(self.package), name)
