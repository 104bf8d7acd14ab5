"""Run test files against a copy of the package: with mutants in it, or other compiled passes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rskc"
# An editable install would find the package before the copy is found.
RUN = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "MesonpyMetaFinder"]
sys.path.insert(0, sys.argv[1])
import rskc, pytest
assert rskc.__file__.startswith(sys.argv[1])
{before}
sys.exit(pytest.main(["-p", "no:cacheprovider", *sys.argv[2:]]))
"""


def copy_package(folder: Path, compiled: Path | None) -> Path:
    """Copy the package, with compiled passes if these are named; return where it is."""
    copy = folder / "rskc"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.pyd"))
    if compiled is not None:
        shutil.copy(compiled, copy / "engines")
    return copy


def run_tests(
    folder: Path, names: tuple[str, ...], *options: str, before: str = "", env: dict, **more: Any
) -> int:
    """Run test files against the copy, after this line of Python; return the exit code."""
    files = [str(next((ROOT / "tests").rglob(f"test_{name}.py"))) for name in names]
    command = [sys.executable, "-c", RUN.replace("{before}", before), str(folder)]
    command += [*options, *files]
    return subprocess.run(command, cwd=ROOT, env=os.environ | env, **more).returncode
