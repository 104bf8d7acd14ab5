"""Run tests of the passes with AddressSanitizer and UndefinedBehaviorSanitizer.

    make sanitize

The passes are compiled into ``build/sanitize``, and tests run on a copy of the package with them.
Small tables get two threads too. What a sanitizer finds ends the run, with the place in the source.
It takes gcc and its libraries, on Linux.
"""

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from package_copy import ROOT, copy_package, run_tests

BUILD = ROOT / "build" / "sanitize"
TESTS = ("passes", "engines", "engine_contract", "sparse", "sample_weight", "solver", "split_merge")
TESTS += ("missing", "limits")
OPTIONS = {
    "b_sanitize": "address,undefined",
    "b_lundef": "false",  # Python has the symbols
    "buildtype": "debugoptimized",
    "c_args": "-fno-sanitize-recover=all -fno-omit-frame-pointer",
    "compiled": "enabled",
}
THREADS = "from rskc.engines import memory; memory.LONG_PASS = memory.SHARED_WORK = 0"


def build() -> Path:
    """Compile the passes; return the module."""
    settings = [f"-D{name}={value}" for name, value in OPTIONS.items()]
    again = ["--reconfigure"] if (BUILD / "build.ninja").exists() else []
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    subprocess.run([*meson, "setup", *again, BUILD, *settings], cwd=ROOT, check=True)
    subprocess.run([*meson, "compile", "-C", BUILD], check=True)
    return BUILD / "src/rskc/engines" / f"_passes{sysconfig.get_config_var('EXT_SUFFIX')}"


def main() -> int:
    """Build, run and return the exit code of the tests."""
    compiled = build()
    libraries = ("libasan.so", "libubsan.so")
    found = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True)
        for name in libraries
    ]
    variables = {
        "LD_PRELOAD": " ".join(done.stdout.strip() for done in found),
        # Python itself leaves memory behind at its end.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "OMP_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "passive",
        "RSKC_REQUIRE_COMPILED": "1",
    }
    with tempfile.TemporaryDirectory() as folder:
        copy_package(Path(folder), compiled)
        return run_tests(Path(folder), TESTS, *sys.argv[1:], before=THREADS, env=variables)


if __name__ == "__main__":
    sys.exit(main())
