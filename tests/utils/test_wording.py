"""Wording: counts, lists and names; errors and warnings that each surface can phrase."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from rskc import SmallClusterWarning
from rskc.exceptions import FitWarning, ParameterError
from rskc.model.warnings import KINDS, fit_warning
from rskc.utils.wording import cleaned


@given(st.text(), st.integers(3, 40))
def test_cleaned_names_are_one_short_line(name, width):
    text = cleaned(name, width)
    assert len(text) <= width
    assert text == " ".join(text.split())
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "original",
    [
        ParameterError("trim", 2, "is too large; lower {trim}."),
        fit_warning("not converged", value=3),
    ],
)
def test_fields_survive_another_process(original):
    again = pickle.loads(pickle.dumps(original))
    assert type(again) is type(original)
    assert str(again) == str(original)
    assert again.parameter == original.parameter
    assert again.phrased({"trim": "--trim"}) == original.phrased({"trim": "--trim"})


class _Anything(dict):
    def __missing__(self, name):
        return 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_warning_has_words(kind):
    made, parameter, template = KINDS[kind]
    assert issubclass(made, FitWarning)
    assert issubclass(made, UserWarning)
    text = template.format_map(_Anything())
    assert text.endswith(".")
    assert parameter is None or f"{{{parameter}}}" in template


def test_warnings_keep_their_usual_classes():
    assert issubclass(KINDS["not converged"][0], ConvergenceWarning)
    assert KINDS["small cluster"][0] is SmallClusterWarning
