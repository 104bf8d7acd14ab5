"""Errors are one sentence, and that which was reviewed: see ``refusals.py``."""

import pytest

import refusals
from skips import skip_without


@pytest.mark.parametrize("section", refusals.sections().values(), ids=lambda each: each.title)
def test_what_is_refused_was_reviewed(section):
    """After a change: ``python tests/refusals.py``, and read what changed."""
    skip_without(*section.packages)
    assert refusals.raised(section) == section.lines
