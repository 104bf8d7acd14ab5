"""What all tests share: hypothesis' profiles, and a look at the passes in use."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from rskc.versions import environment

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
    """Users fall back to NumPy quietly; continuous integration must not."""
    if os.environ.get("RSKC_REQUIRE_COMPILED") != "1" or environment()["passes"] == "compiled":
        return
    pytest.exit("RSKC_REQUIRE_COMPILED=1, but the compiled passes are not installed.", returncode=1)


@pytest.fixture(scope="module", autouse=True)
def _same_scheduler() -> Iterator[None]:
    """A client of Dask that a module leaves behind would fail the tests of later modules."""
    before = _scheduler()
    yield
    assert _scheduler() == before


def _scheduler() -> Any:
    """Return the scheduler in the configuration of Dask, if Dask is imported."""
    dask = sys.modules.get("dask")
    return None if dask is None else dask.config.get("scheduler", None)
