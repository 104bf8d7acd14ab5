"""A few of the trials of tests/fuzz.py; it runs them by the thousand."""

import subprocess
import sys
from pathlib import Path

import pytest

import fuzz
from skips import skip_without

TOOL = Path(__file__).with_name("fuzz.py")
few_or_many = pytest.mark.parametrize("share", [1, pytest.param(20, marks=pytest.mark.slow)])


@pytest.mark.parametrize("seed", [181])  # no feature has a center in every cluster
@pytest.mark.filterwarnings("ignore")
def test_found_faults_stay_mended(seed):
    assert fuzz.fit_and_use(seed) is None


@few_or_many
@pytest.mark.parametrize(("kind", "n"), [("tables", 10), ("searches", 12), ("order", 3)])
def test_no_fault(kind, n, share):
    found = {name: words for name, words in fuzz.faults(kind, range(n * share)) if words}
    assert not found


@few_or_many
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and forks")
def test_damaged_files_are_refused_in_one_sentence(share):
    skip_without(*fuzz.NEEDED)
    command = [sys.executable, TOOL, "files", "--most", str(len(fuzz.COMMANDS) * share)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
