"""Versions and facts about the machine and the build, for bug reports."""

import os
import platform
import sys
from importlib.metadata import version

_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")


def _blas() -> str:
    import scipy.linalg  # noqa: F401  loads the BLAS that the passes call
    from threadpoolctl import threadpool_info

    described = {
        f"{pool['internal_api']} {pool['version']} ({pool['num_threads']} threads)"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return ", ".join(sorted(described)) or "unknown to threadpoolctl"


def environment() -> dict[str, str]:
    """Return facts about the build and the machine, in the order they are printed."""
    import joblib

    from rskc.engines import passes_info

    info, has_gil = passes_info(), getattr(sys, "_is_gil_enabled", lambda: True)()
    limit = os.environ.get("OMP_NUM_THREADS", "not set")
    return {
        "rskc": version("rskc"),
        "passes": "compiled" if info["compiled"] else "NumPy",
        "OpenMP": "yes" if info["openmp"] else "no",
        "threads": f"{joblib.cpu_count()} CPUs usable, OMP_NUM_THREADS {limit}",
        "BLAS": _blas(),
        "python": sys.version.split()[0] + ("" if has_gil else ", without the GIL"),
        "platform": platform.platform(),
        **{name: version(name) for name in _PACKAGES},
    }


def show_versions() -> None:
    """Print the versions, the passes in use (compiled or NumPy), OpenMP, threads and BLAS.

    Paste its output into a bug report.
    """
    facts = environment()
    width = max(map(len, facts))
    for name, fact in facts.items():
        print(f"{name:>{width}}: {fact}")
