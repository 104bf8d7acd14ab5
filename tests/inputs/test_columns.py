"""Traps for a newcomer: ids and classes among the numbers, tables on their side, units."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import labels, run
from rskc import RobustSparseKMeans
from rskc.exceptions import ColumnWarning
from rskc.files import read_table
from rskc.files.blocks import open_blocks
from rskc.inputs.columns import (
    SKEWED,
    alike_words,
    codes_of_missing,
    copies_among,
    recognize,
    sign_of_side,
    skewness_of,
    spreads_of,
)

rng = np.random.default_rng(0)
N = 40
GROUP = np.arange(N) % 2
COUNT = np.arange(N)


def frame(**columns):
    """Two clusters in two of four features, between columns that are no measurements."""
    features = {
        name: rng.normal(size=N) + 6 * GROUP * (name in "ab") for name in ("a", "b", "c", "d")
    }
    return pd.DataFrame(columns | features)


@pytest.fixture
def put(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def put(made, name="t.csv"):
        getattr(made, f"to_{Path(name).suffix[1:]}")(name, index=False)
        return name

    return put


def flat(text):
    """A text without the line breaks of a terminal."""
    return " ".join(text.split())


# --- the rules


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("id", COUNT + 1000, "id"),
        ("sample", COUNT + 1, "id"),
        ("Patient ID", COUNT[::-1] * 7, "id"),
        ("sampleID", COUNT // 2, "id"),  # repeats, and is no measurement all the same
        ("KundenNr", COUNT[::-1] * 7, "id"),
        ("Kundennummer", COUNT[::-1] * 7, "id"),
        ("customer number", COUNT[::-1] * 7, "id"),
        ("mitotic number", COUNT[::-1] * 7, None),
        ("order no", COUNT % 7, None),  # repeats
        ("first", COUNT, "id"),
        ("label", GROUP + 1, "class"),
        ("true_class", COUNT % 3, "class"),
        ("target", GROUP - 1, "class"),
        ("Survived", GROUP, "class"),
        ("zip", 10_000 + COUNT[::-1] * 7, "id"),
        ("visit", 20200101 + COUNT % 28 + 100 * (COUNT % 12), "date"),
        ("visit", 20200101 + COUNT[::-1] * 7, None),  # of months without a 40th day
        ("y", GROUP, "class"),
        ("pos_y", GROUP, None),
        ("y", COUNT[::-1] / 3, None),
        ("score", 1 + COUNT % 10, None),
        ("count", rng.poisson(4, N), None),
        ("reads", rng.permutation(N), None),  # whole numbers that never repeat
        ("year", COUNT + 1980, None),
        ("age", np.sort(rng.choice(90, N, False)), None),
        ("body mass index", COUNT[::-1] + 0.5, None),
        ("label", rng.normal(size=N), None),
        ("target", COUNT[::-1], None),  # too many for classes
        ("Unnamed: 0", COUNT * 2, "id"),
        ("sample1", COUNT[::-1], None),  # of a table on its side
        ("ID1", rng.permutation(N), None),  # a gene
        ("gene1", GROUP, None),
        ("group1", GROUP, None),
        ("groupsize", COUNT % 3, None),
        ("valid", COUNT % 3, None),
    ],
)
def test_what_a_column_of_numbers_is(name, values, kind):
    found = recognize([name, "other"], np.column_stack([values, rng.normal(size=N)]).astype(float))
    assert [column.kind for column in found.values()] == [kind] * (kind is not None)


def test_a_column_that_counts_may_stand_anywhere_if_there_are_many_cases():
    matrix = np.column_stack([rng.normal(size=N), COUNT + 1.0])
    assert list(recognize(["a", "b"], matrix)) == [1]
    assert recognize(["a", "b"], matrix[:5]) == {}
    assert recognize(["a", "b"], np.column_stack([COUNT[:3], COUNT[:3]]).astype(float)) == {}


def test_whole_numbers_that_count_from_anywhere_are_ids_unless_they_measure_time():
    code = np.column_stack([rng.normal(size=N), 1000.0 + COUNT])
    assert recognize(["a", "code"], code)[1].kind == "id"
    assert recognize(["a", "year"], code) == {}
    assert recognize(["a", "code"], code[:10]) == {}  # ten in a row may be chance


def test_beside_an_x_y_is_a_coordinate():
    table = np.column_stack([GROUP, COUNT % 3, rng.normal(size=N)]).astype(float)
    assert list(recognize(["b", "y", "c"], table)) == [1]
    assert recognize(["x", "y", "c"], table) == {}


def test_missing_cells_name_nobody():
    values = COUNT.astype(float)
    values[3] = np.nan
    assert recognize(["sample", "b"], np.column_stack([values, values])) == {}


@pytest.mark.parametrize(
    ("name", "n_rows", "columns", "sign"),
    [
        ("gene", 50, ["a"] * 40, "a first column 'gene'"),
        ("Probe_ID", 2000, ["a"] * 40, "a first column 'Probe_ID'"),
        ("", 20_000, ["a"] * 78, "20,000 rows and 78 columns of numbers"),
        ("", 2000, ["a"] * 274, "2,000 rows and 274 columns of numbers"),
        ("customer", 20_000, ["a"] * 78, None),
        ("patient_id", 20_000, ["a"] * 5, None),
        ("name", 150, ["a"] * 4, None),
        (None, 20_000, ["a"] * 5, None),
        ("name", 8, [f"sample_{i}" for i in range(9)], "columns named like cases"),
        ("", 8, ["mean", *(f"Patient.{i}" for i in range(9))], "columns named like cases"),
        ("", 8, [f"P{i}" for i in range(9)], "columns named like cases ('P0', 'P1', ...)"),
        ("name", 8, [f"P{i}" for i in range(9)], None),  # questions, of people with names
        ("", 8, [f"x{i}" for i in range(9)], None),
        ("", 8, ["sample_1", "sample_2", "sample_3"], None),
        ("patient", 8, [f"sample_{i}" for i in range(9)], None),
    ],
)
def test_tables_on_their_side(name, n_rows, columns, sign):
    found = sign_of_side(name, n_rows, columns)
    assert found is None if sign is None else found.startswith(sign)


def test_spreads_by_hand():
    matrix = np.column_stack([np.arange(8.0), 200 * np.arange(8.0), np.ones(8), [0] * 7 + [8]])
    spreads = spreads_of(matrix)
    assert (spreads.largest, spreads.small) == (1, 3)  # the constant one does not count
    assert spreads.ratio == pytest.approx(700 / np.std(matrix[:, 3]))
    assert spreads_of(matrix[:, :1]) is None
    # Of many columns a few hardly vary; a tenth of them do not count.
    many = rng.normal(size=(100, 50))
    many[:, :4] *= 1e-6
    assert spreads_of(many).ratio < 3


def test_skewness_by_hand():
    steps = np.arange(21.0)  # deciles 2, 10, 18
    assert skewness_of(steps[:, None]) == 0
    assert skewness_of(np.where(steps > 10, 10 + 3 * (steps - 10), steps)[:, None]) == 0.5
    assert skewness_of(steps[:19, None]) is None  # too few cases
    zeros = np.where(steps > 12, steps, 0.0)  # mostly 0: counts say nothing
    assert skewness_of(np.column_stack([zeros, zeros, steps])) is None


@pytest.mark.parametrize("seed", range(3))
def test_logarithms_are_advised_for_amounts_alone(seed):
    normal = np.random.default_rng(seed).normal(size=(60, 100))
    assert abs(skewness_of(normal)) < SKEWED / 2
    assert skewness_of(np.exp(normal)) > SKEWED
    assert skewness_of(1000 * np.exp(normal) - 7) == pytest.approx(skewness_of(np.exp(normal)))


# --- from the command line


def test_all_columns_are_used_if_nothing_else_is_left(put):
    put(pd.DataFrame({"id": COUNT}))
    assert read_table("t.csv").data.shape == (N, 1)


def test_readers_say_what_they_set_aside(put):
    put(frame(row=COUNT, sample_id=COUNT * 3, label=GROUP), "t.parquet")
    for table in (read_table("t.parquet"), open_blocks("t.parquet")):
        roles = [(column.name, column.role) for column in table.set_aside]
        assert roles == [("row", "names"), ("sample_id", "left out"), ("label", "classes")]
        assert (table.id_column, table.label_column) == ("row", "label")
    everything = read_table("t.parquet", use_columns="all")
    assert everything.set_aside == ()
    assert everything.data.shape[1] == 7
    assert read_table("t.parquet", use_columns="label").labels is None


def test_predict_and_report_use_the_columns_of_the_fit(put):
    put(frame(id=COUNT + 1000, label=GROUP + 1))
    run("fit", "t.csv", "-k", "2", "--no-report", "--quiet", "--use-column", "label")
    run("predict", "t-rskc", "t.csv", "--quiet")
    assert list(labels(".", "t-labels.csv").cluster) == list(labels("t-rskc").cluster)
    assert list(labels(".", "t-labels.csv").case) == list(COUNT + 1000)
    run("report", "t-rskc", "t.csv", "--quiet")


# --- in Python


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_warned_of(library):
    made = frame(id=COUNT + 1000, label=GROUP + 1)
    if library == "polars":
        made = pytest.importorskip("polars").from_pandas(made)
    with pytest.warns(ColumnWarning) as warned:
        RobustSparseKMeans(2, n_init=2, random_state=0).fit(made)
    remedies = {"pandas": ["X.set_index('id')", "X.drop(columns='label')"]}
    remedies["polars"] = ["X.drop('id')", "X.drop('label')"]
    for each, name, remedy in zip(warned, ("id", "label"), remedies[library], strict=True):
        assert f"Column '{name}' of X" in str(each.message)
        assert str(each.message).endswith(f"leave it out: {remedy}.")
        assert each.filename == __file__


def test_frames_of_measurements_and_arrays_are_not():
    made = frame(score=COUNT % 10, reads=rng.permutation(N), year=COUNT + 1980)
    RobustSparseKMeans(2, n_init=2, random_state=0).fit(made)
    RobustSparseKMeans(2, n_init=2, random_state=0).fit(
        np.column_stack([COUNT, made.a, made.b]).astype(float)
    )


# --- numbers that stand for missing cells


@pytest.mark.parametrize(
    ("value", "rest", "found"),
    [
        (-9, np.linspace(-5.05, 4.05, 30), True),  # the only one without decimals
        (-9, np.arange(-5, 25), False),
        (-1, np.arange(30), True),
        (-1, np.arange(30) % 2, False),  # of -1, 0 and 1 it is one
        (-1, np.linspace(-0.9, 0.9, 30), False),
        (99, np.arange(30) % 5 + 1, True),  # of answers from 1 to 5
        (99, np.arange(30), False),
    ],
)
def test_small_numbers_stand_for_missing_cells_where_they_are_apart(value, rest, found):
    column = np.r_[[value] * 3, rest][:, None].astype(float)
    assert codes_of_missing(column) == ([(value, 3, [0])] if found else [])


def test_numbers_that_are_no_codes():
    assert codes_of_missing(np.array([[-999.0], [1], [2], [3], [4], [5], [6]])) == []  # once
    x = np.linspace(-1000, 1000, 30)[:, None]
    x[:4] = -999  # within reach of the others, which are below 0 too
    assert codes_of_missing(x) == []
    assert codes_of_missing(np.repeat([-999.0, 1.0], [20, 10])[:, None]) == []  # most cells
    assert codes_of_missing(np.repeat([99.0, 1.0], [4, 20])[:, None]) == []
    positive = np.r_[[-999.0] * 4, np.linspace(0, 5000, 20), np.nan][:, None]
    assert codes_of_missing(np.hstack([positive, positive + 1e6])) == [(-999, 4, [0])]
    assert codes_of_missing(np.empty((0, 3))) == []


# --- cases that occur twice


def test_several_numbers_stand_for_missing_cells():
    column = np.r_[[-99.0] * 4, [999.0] * 5, np.linspace(0, 50, 40)][:, None]
    assert codes_of_missing(column) == [(999, 5, [0]), (-99, 4, [0])]
    thousands = np.r_[[-9.0] * 3, np.linspace(0, 9000, 60).round()][:, None]
    assert codes_of_missing(thousands) == []


def test_words_that_hardly_differ():
    assert alike_words(["Male", "male", "female"]) == [("Male", "male")]
    assert alike_words(["Berlin", "Berlim", "Bern"]) == [("Berlin", "Berlim")]
    assert alike_words(["north", "nort h", "nroth"]) == [
        ("north", "nort h"), ("north", "nroth"), ("nort h", "nroth")
    ]  # fmt: skip
    assert alike_words(["a", "b", "yes", "yep", "level 1", "level 2"]) == []


@pytest.mark.parametrize("first", ["P", ""])
def test_ids_of_which_one_repeats_stay(put, first):
    ids = [f"{first}{1000 + 7 * i}" for i in range(N)]
    ids[0] = ids[1]
    put(frame(customer_id=ids))
    told = flat(run("fit", "t.csv", "-k", "2", "--no-report").stderr)
    assert f"1 row repeats an id ('{ids[0]}')" in told
    labels = pd.read_csv("t-rskc/labels.csv", dtype=str)
    assert labels["case"].tolist() == ids
    put(frame(customer_id=[*ids[:30], *ids[:10]]))
    told = flat(run("fit", "t.csv", "-k", "2", "--no-report", "--force").stderr)
    assert "; to name the cases by it, add --id-column customer_id" in told


def test_copies_are_those_that_no_chance_explains():
    X = rng.normal(size=(40, 3))
    assert copies_among(X).tolist() == []
    assert copies_among(np.vstack([X, X[:2]])).tolist() == [40, 41]
    assert copies_among(np.vstack([X, X[:1]])).tolist() == []  # a single one
    X[3, 1] = np.nan
    assert copies_among(np.vstack([X, X[3:5]])).tolist() == [40, 41]
    assert copies_among(rng.integers(0, 2, (40, 3)).astype(float)).tolist() == []
