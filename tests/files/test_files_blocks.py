"""Tables that are read block by block: the rows and columns of their files."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from rskc.files import TableError, blocks, read_table
from rskc.files.blocks import open_blocks

N = 240


@pytest.fixture(scope="module")
def frame():
    data = np.random.default_rng(0).standard_normal((N, 8))
    data[5, 2] = np.nan
    frame = pd.DataFrame(data, columns=[f"gene{j}" for j in range(8)])
    frame.insert(0, "patient", [f"P{i}" for i in range(N)])
    frame.insert(4, "group", np.array(["a", "b", "c"])[np.arange(N) % 3])
    return frame


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("group", "sizes"),
    [(25, [50, 50, 50, 50, 40]), (60, [60] * 4), (100, [50, 50, 50, 50, 40]), (240, [60] * 4)],
)
def test_blocks_are_small_row_groups_together_or_parts_of_large_ones(
    frame, monkeypatch, group, sizes
):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 60 * 10 * 8)
    frame.to_parquet("groups.parquet", index=False, row_group_size=group)
    table = open_blocks("groups.parquet", label_column="group")
    assert [piece.n_cases for piece in table.pieces] == sizes
    assert [piece.first for piece in table.pieces] == (np.cumsum(sizes) - sizes).tolist()
    made = [table.read(piece) for piece in table.pieces]
    whole = read_table("groups.parquet", label_column="group")
    pd.testing.assert_frame_equal(pd.concat([block.data for block in made]), whole.data)
    assert_array_equal(np.concatenate([block.labels for block in made]), whole.labels)


def test_blocks_of_a_row_group_are_read_in_any_order_and_by_any_thread(frame, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 7 * 10 * 8)
    monkeypatch.setattr(blocks, "ROWS_AT_A_TIME", 5)
    frame.to_parquet("groups.parquet", index=False, row_group_size=100)
    table = open_blocks("groups.parquet", label_column="group")
    whole = read_table("groups.parquet", label_column="group").data.to_numpy()
    rng = np.random.default_rng(0)
    with ThreadPoolExecutor(4) as pool:
        every = np.arange(len(table.pieces))
        for numbers in (every, every[::-1], rng.permutation(every)):
            pieces = [table.pieces[i] for i in numbers]
            for piece, found in zip(pieces, pool.map(table.read_features, pieces), strict=True):
                assert_array_equal(found, whole[piece.first : piece.first + piece.n_cases])


def test_blocks_in_order_decode_a_row_group_once(frame, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 7 * 10 * 8)
    opened = []
    start = blocks._Stream.__init__
    monkeypatch.setattr(blocks._Stream, "__init__", count_opened(opened, start))
    frame.to_parquet("groups.parquet", index=False, row_group_size=120)
    table = open_blocks("groups.parquet", label_column="group")
    for piece in table.pieces:
        table.read_features(piece)
    assert opened == [0, 120]
    for piece in table.pieces:  # all columns and some in turns
        table.read_features(piece)
        table.read_features(piece, ["gene1"])
    assert opened == [0, 120, 0, 0, 120, 120]


def count_opened(opened, start):
    def counted(stream, path, columns, begin, texts):
        opened.append(begin)
        start(stream, path, columns, begin, texts)

    return counted


def test_single_precision_whole_numbers_and_empty_cells():
    frame = pd.DataFrame({"a": np.arange(6, dtype="f4"), "b": np.arange(6, dtype="f4")})
    frame.loc[2, "a"] = np.nan
    frame.to_parquet("single.parquet", index=False)
    frame.assign(b=pd.array([1, None, 3, 4, 5, 2**40], "Int64")).to_parquet(
        "mixed.parquet", index=False
    )
    for name, dtype in (("single.parquet", "f4"), ("mixed.parquet", "f8")):
        for marks in ((), ("0", "4")):
            table = open_blocks(name, missing_values=marks)
            assert table.dtype == dtype
            known = read_table(name, missing_values=marks).data
            assert_array_equal(table.read_features(table.pieces[0]), known)


def test_blocks_of_a_matrix(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 8 * 3 * 40)
    matrix = np.arange(300).reshape(100, 3)
    np.save("matrix.npy", matrix)
    table = open_blocks("matrix.npy", drop=["x1"])
    assert [piece.n_cases for piece in table.pieces] == [33, 33, 34]
    made = np.concatenate([table.read_features(piece) for piece in table.pieces])
    assert_array_equal(made, matrix[:, [0, 2]])
    np.save("flat.npy", np.arange(3))
    with pytest.raises(TableError, match="no table of numbers"):
        open_blocks("flat.npy")
