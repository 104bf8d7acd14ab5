"""Wording: counts, lists and names; errors and warnings that each surface can phrase."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from rskc import SmallClusterWarning
from rskc.exceptions import FitWarning, ParameterError
from rskc.inputs.validation import check_choice, check_integer, check_real, check_sparsity
from rskc.model.warnings import KINDS, fit_warning
from rskc.utils.wording import (
    cleaned,
)


@given(st.text(), st.integers(3, 40))
def test_cleaned_names_are_one_short_line(name, width):
    text = cleaned(name, width)
    assert len(text) <= width
    assert text == " ".join(text.split())
    assert "\x1b" not in text


OPTIONS = {"n_clusters": "--clusters", "l1_bound": "--l1-bound", "trim": "--trim", "None": "none"}


def refusal(check, *arguments):
    with pytest.raises(ParameterError) as refused:
        check(*arguments)
    return refused.value


def test_an_error_names_parameter_and_value():
    error = refusal(check_integer, "n_clusters", 0, 1)
    assert (error.parameter, error.value) == ("n_clusters", 0)
    assert isinstance(error, ValueError)
    assert str(error) == "n_clusters=0 must be an integer >= 1."
    assert error.phrased(OPTIONS) == "--clusters=0 must be an integer >= 1."


def test_values_are_not_taken_for_names():
    for value in ("{trim}", "n_clusters", "{", "{0}"):
        error = refusal(check_choice, "n_clusters", value, ("a", "b"))
        assert error.phrased(OPTIONS) == f"--clusters={value!r} must be one of 'a', 'b'."


def test_remedies_are_phrased_too():
    error = refusal(check_sparsity, 0.5, None, 9)
    assert "use None to keep" in str(error)
    assert "use none to keep" in error.phrased(OPTIONS)


def test_long_values_are_cut():
    assert len(str(refusal(check_real, "trim", "x" * 10_000, 0))) < 300


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
