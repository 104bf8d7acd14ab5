"""What is refused and what is read is what was reviewed: see ``refusals.py``."""

import pytest

import refusals
from skips import skip_without


@pytest.mark.parametrize(
    "section",
    [pytest.param(s, id=s.title) for file in refusals.KEPT for s in refusals.sections(file)],
)
def test_what_is_refused_and_read_was_reviewed(section):
    """After a change: ``python tests/refusals.py``, and read what changed."""
    skip_without(*section.packages)
    assert refusals.told(section) == section.lines
