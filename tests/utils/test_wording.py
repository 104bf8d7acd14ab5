"""Wording: counts, lists and names; errors and warnings that each surface can phrase."""

import pickle

import numpy as np
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
    count,
    in_bytes,
    in_time,
    listed,
    number,
    percent,
    quoted,
    sentence_list,
    short_repr,
    shortened,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (count(1, "case"), "1 case"),
        (count(0, "case"), "0 cases"),
        (count(1797, "case"), "1,797 cases"),
        (count(np.int64(2), "case is", "cases are"), "2 cases are"),
        (listed("abc"), "a, b, c"),
        (listed([]), ""),
        (listed(range(9), 2), "0, 1 and 7 more"),
        (listed(["a", "b"], 2, 1002), "a, b and 1,000 more"),
        (sentence_list(["a"]), "a"),
        (sentence_list(["a", "b", "c"]), "a, b and c"),
        (sentence_list(["a", "b", "c", "d"]), "a, b, c and 1 more"),
        (quoted(["a b", "it's"], 1), "'a b' and 1 more"),
        (shortened("abcdef", 5), "ab..."),
        (shortened("abcde", 5), "abcde"),
        (short_repr(list(range(100)))[-8:], "5, 16..."),
        (cleaned("a\x1b[31m\n b\u202ec"), "a [31m b c"),
        (cleaned("abcdefghij", 5), "ab…ij"),
        (cleaned("x" * 10**6), "x" * 60 + "…" + "x" * 59),
        (cleaned(("a", 1)), "('a', 1)"),
        (" ".join(map(number, (3.0, 1234567, 0.01234, 1e-9))), "3 1,234,567 0.0123 1e-09"),
        (number(None) + number(np.nan), "––"),
        (" ".join(map(percent, (0, 0.001, 0.5, 0.9999, 1))), "0% 0.1% 50% 99.9% 100%"),
        (" ".join(map(in_bytes, (900, 1500, 999_600, 5e12))), "900 bytes 1.5 kB 1 MB 5000 GB"),
        (", ".join(map(in_time, (0.1, 150, 9e3))), "1 second, 2 minutes, 2 hours"),
    ],
)
def test_words(text, expected):
    assert text == expected


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
