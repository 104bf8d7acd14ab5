"""Checkpoints: which are refused, that they are left alone then, and what comes back of others."""

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rskc import RobustSparseKMeans
from rskc.selection.checkpoint import Checkpoint
from search_kinds import (
    Calls,
    assert_one_sentence,
    assert_same,
    assert_sound,
    corners,
    count_results,
    fitted,
    search_of,
    stopped,
)


@pytest.fixture(scope="module")
def stopped_after_four(tmp_path_factory):
    """The checkpoints of two searches."""
    folder = tmp_path_factory.mktemp("stopped")
    for name in ("Clest", "GapL1"):
        stopped(name, folder / name, 4)
    return folder


@pytest.fixture
def path(stopped_after_four, tmp_path):
    """The checkpoint of Clest."""
    return shutil.copy(stopped_after_four / "Clest", tmp_path / "checkpoint")


def assert_refused(path, words, name="Clest", X=None, **params):
    """A search must not take a checkpoint, nor change it."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ValueError, match=words) as error:
        search_of(name, checkpoint=path, **params).fit(corners() if X is None else X)
    assert_one_sentence(error)
    assert before is None or path.read_bytes() == before
    return str(error.value)


def alter(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


# ---- Of something else


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"estimator__trim": 0.1}, "estimator__trim=0.05 and this search has estimator__trim=0.1"),
        ({"estimator__n_init": 4}, "estimator__n_init"),
        ({"n_splits": 4}, "n_splits=3 and this search has n_splits=4"),
        ({"n_clusters": (2, 3, 4)}, "n_clusters"),
        ({"rule": "agreement", "n_references": 3, "level": 0.3}, "level|rule"),
        ({"random_state": 1}, "random_state"),
        ({"estimator": type("Mine", (RobustSparseKMeans,), {})(3)}, "estimator"),
    ],
)
def test_a_checkpoint_of_another_setting_is_refused(params, words, path):
    message = assert_refused(path, words, **params)
    assert "new file, or delete this one" in message


def test_what_does_not_change_the_result_is_not_refused(path):
    calls = Calls()
    how = {"n_clusters": range(2, 4), "estimator__n_threads": 1, "estimator__random_state": 3}
    search = search_of("Clest", checkpoint=str(path), progress=calls, **how).fit(corners())
    assert calls[0] == (4, 12)
    assert_array_equal(search.observed_cers_, fitted("Clest").observed_cers_)


@pytest.mark.parametrize(
    "change", [lambda X: X + 1e-9 * (X[0, 0] == X), lambda X: X[:-1], lambda X: X.astype("f4")]
)
def test_a_checkpoint_of_other_data_is_refused(change, path):
    assert_refused(path, "was made with other data", X=change(corners()))


def test_a_checkpoint_is_of_its_weights(tmp_path):
    weights = np.random.default_rng(6).uniform(0.2, 3, 60)
    search = search_of("Clest", checkpoint=tmp_path / "checkpoint")
    table = search.fit(corners(), sample_weight=weights).table_
    assert search.fit(corners(), sample_weight=weights).table_.equals(table)
    with pytest.raises(ValueError, match="was made with other data"):
        search.fit(corners(), sample_weight=weights[::-1])


IDENTITY = "update identity set value = '{}' where name = '{}'"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (IDENTITY.format("GapL1", "search"), "search=GapL1 and this search has search=Clest"),
        (IDENTITY.format("rskc checkpoint 0", "format"), "format=rskc checkpoint 0 "),
        (IDENTITY.format("9.9", "rskc"), "rskc=9.9 "),
        ("delete from identity where name = 'level'", "level=None"),
        ("insert into identity values ('color', 'blue')", "color=blue"),
    ],
)
def test_a_checkpoint_of_another_search_or_version_is_refused(statement, words, path):
    alter(path, statement)
    assert_refused(path, f"was made with {words}")


def write_truncated(path):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def write_foreign_database(path):
    path.unlink()
    alter(path, "create table recipes (name text)")


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_text("cases,x,y\n" + "1,2,3\n" * 500),
        lambda path: path.write_text("1,2,3\n"),
        write_foreign_database,
        write_truncated,
    ],
)
def test_a_file_of_something_else_is_refused_and_left_alone(write, path):
    write(path)
    assert_refused(path, "cannot be used")


def test_a_folder_and_a_missing_folder_are_refused(tmp_path):
    unwritable = [Path("/proc/checkpoint")] * Path("/proc").exists()  # even for root
    for path in (tmp_path, tmp_path / "nowhere" / "checkpoint", *unwritable):
        assert_refused(path, "cannot be used")
    assert list(tmp_path.iterdir()) == []


# ---- Damaged


def damage_pages(path):
    """Keep the schema and the identity, and garble what follows."""
    whole = path.read_bytes()
    path.write_bytes(whole[: 5 * 4096] + b"x" * (len(whole) - 5 * 4096))


@pytest.mark.parametrize(
    "damage",
    [
        damage_pages,
        "update results set value = substr(value, 1, 60)",
        "update results set value = zeroblob(length(value))",
        "update results set value = 'text'",
        "update results set value = (select value from results limit 1)",
        IDENTITY.format("none", "seed"),
        "delete from identity where name = 'seed'",
    ],
)
def test_a_checkpoint_with_damaged_results_is_refused(damage, stopped_after_four, tmp_path):
    path = shutil.copy(stopped_after_four / "GapL1", tmp_path / "checkpoint")
    if callable(damage):
        damage(path)
    else:
        alter(path, damage)
    with pytest.raises(ValueError, match="checkpoint=") as error:
        search_of("GapL1", checkpoint=path).fit(corners())
    assert_one_sentence(error)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")
def test_a_refused_checkpoint_is_let_go_of(path):
    with pytest.raises(ValueError, match="n_splits") as error:
        search_of("Clest", checkpoint=path, n_splits=9).fit(corners())
    assert "n_splits" in str(error.value)  # which keeps the traceback alive, as a shell does
    links = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
    assert str(path.resolve()) not in links


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_task_leaves_the_checkpoint_whole(n_jobs, tmp_path, in_processes):
    """Two distinct cases at most in each test set: enough for K = 2 in some splits, not for 3."""
    X = np.repeat([[0.0, 1.0], [5.0, 5.0]], 15, axis=0)
    X[0] = -9  # so that the data pass
    path = tmp_path / "checkpoint"
    for _ in range(3 - n_jobs):  # again in this process: it goes on to the same error
        fit = {"estimator__trim": 0, "estimator__l1_bound": 1.2, "estimator__n_init": 1}
        with pytest.raises(ValueError, match="n_clusters=3 is more than the 2 distinct") as error:
            search_of("Clest", checkpoint=path, n_jobs=n_jobs, **fit).fit(X)
        assert_one_sentence(error)
        assert_sound(path)
    assert n_jobs > 1 or count_results(path) > 0


# ---- What comes back


def test_a_result_is_safe_at_once_and_comes_back_as_it_was(tmp_path):
    path, result = tmp_path / "checkpoint", {"cer": 0.1 + 0.2, "labels": np.arange(4, dtype="i4")}
    store = Checkpoint(path, {"seed": None})
    store.add("one", result)
    assert count_results(path) == 1
    store.add("one", result)
    store.close()
    with contextlib.closing(Checkpoint(path, {"seed": None})) as again:
        assert again.identity == store.identity
        (back,) = again.results().values()
    assert back["cer"] == result["cer"]
    assert_array_equal(back["labels"], result["labels"])
    assert back["labels"].dtype == np.int32


def stored_seed(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        query = "select value from identity where name = 'seed'"
        return connection.execute(query).fetchone()[0]


def test_without_a_seed_a_search_goes_on_with_that_of_the_checkpoint(tmp_path):
    path, other, copy = (tmp_path / name for name in ("checkpoint", "other", "copy"))
    for file in (path, other):
        stopped("Clest", file, 3, random_state=None)
    seed = stored_seed(path)
    assert stored_seed(other) != seed
    shutil.copy(path, copy)
    searches = [search_of("Clest", random_state=None, checkpoint=file) for file in (path, copy)]
    assert_same(*(search.fit(corners()) for search in searches))
    assert stored_seed(path) == seed
