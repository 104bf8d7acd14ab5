"""What reports, summaries and searches say is what was reviewed: see ``sentences.py``."""

import sentences


def test_sentences_are_those_that_were_reviewed():
    """After a change: ``python tests/sentences.py``, and read what changed."""
    assert sentences.written().splitlines() == sentences.KEPT.read_text("utf-8").splitlines()
