"""What all tests share: hypothesis' profiles, a look at the passes in use, and no silent skips."""

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import browsing
import skips
from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.selection import Clest, GapL1, GridSearch, Stability, runner
from rskc.versions import environment

os.environ.setdefault("MPLBACKEND", "Agg")  # figures need no window
_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "default", deadline=None, max_examples=50, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_report_header() -> str:
    facts = environment()
    return f"rskc: {facts['passes']} passes, OpenMP {facts['OpenMP']}, {facts['threads']}"


def pytest_sessionstart() -> None:
    """Users fall back to NumPy quietly, and do without extras; continuous integration must not."""
    if os.environ.get("RSKC_REQUIRE_COMPILED") == "1" and environment()["passes"] != "compiled":
        pytest.exit("RSKC_REQUIRE_COMPILED=1, but the compiled passes are not installed.", 1)
    if wrong := skips.wrong_environment(os.environ.get("RSKC_EXTRAS")):
        pytest.exit(wrong, 1)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests of pages."""
    yield from browsing.started_browser()


@pytest.fixture(scope="session")
def searches() -> list[Any]:
    """One of each, small; ``make_simulation`` has clusters that they find."""
    data = make_simulation(model=1, random_state=0).data
    model = RobustSparseKMeans(3, trim=0.05, l1_bound=6, n_init=2, random_state=0)
    how: dict[str, Any] = {"random_state": 0, "n_jobs": 1, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            Clest(model, [2, 3], n_splits=3, n_references=19, **how).fit(data),
            GapL1(model, [2, 6, 20], n_permutations=2, **how).fit(data),
            Stability(model, [2, 3, 4], n_splits=2, n_references=3, **how).fit(data),
            GridSearch(model, [2, 3], [3, 6], [0, 0.05], **how).fit(data),
            GridSearch(model, [2, 3], None, [0, 0.05, 0.1], **how).fit(data),
        ]


@pytest.fixture
def closed_figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close all figures, and see that nobody showed one or left one behind."""
    import matplotlib.pyplot as plt

    def show(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("plt.show was called")

    monkeypatch.setattr(plt, "show", show)
    assert not plt.get_fignums()
    yield
    plt.close("all")


@pytest.fixture
def in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let searches with several jobs hand out every task, however short."""
    monkeypatch.setattr(runner, "SERIAL_SECONDS", 0.0)


# ---- No test vanishes in silence

UNEXPECTED: set[str] = set()  # reasons of skips that tests/skips.py does not list


class _ModuleWithoutItsPackages(pytest.File):
    """A test module that is skipped, with the packages that it needs as the reason."""

    def collect(self) -> Any:
        skips.skip_without(*skips.NEEDS[self.path.name])


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Any:
    collectors = yield
    if collectors and skips.missing(skips.NEEDS.get(file_path.name, ())):
        return [_ModuleWithoutItsPackages.from_parent(parent, path=file_path)]
    return collectors


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note(report)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if not hasattr(report, "wasxfail"):
        _note(report)


def _note(report: Any) -> None:
    if report.skipped and not skips.is_expected(reason := _reason(report)):
        UNEXPECTED.add(f"{report.nodeid}: {reason}")


def _reason(report: Any) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if UNEXPECTED and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if UNEXPECTED:
        terminalreporter.section("skipped for reasons that tests/skips.py does not list", red=True)
        for line in sorted(UNEXPECTED):
            terminalreporter.line(line)


# ---- One test leaves the others alone


@pytest.fixture(scope="module", autouse=True)
def _same_scheduler() -> Iterator[None]:
    """A client of Dask that a module leaves behind would fail the tests of later modules."""
    before = _scheduler()
    yield
    assert _scheduler() == before


@pytest.fixture(scope="module", autouse=True)
def _closed_figures() -> Iterator[None]:
    """Close the figures of a module: later ones look whether they themselves leave one behind."""
    yield
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is not None:
        plt.close("all")


def _scheduler() -> Any:
    """Return the scheduler in the configuration of Dask, if Dask is imported."""
    dask = sys.modules.get("dask")
    return None if dask is None else dask.config.get("scheduler", None)
