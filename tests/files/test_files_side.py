"""Tables on their side, as genes are published: recognized, named, and with their classes."""

import numpy as np
import pandas as pd
import pytest

from rskc.files import TableError, read_table
from rskc.files.beside import read_classes

rng = np.random.default_rng(0)
N, P = 24, 60
CLASSES = ["ALL"] * 10 + ["AML"] * 14
CELLS = np.exp(rng.normal(6, 1.5, (P, 1)) + rng.normal(0, 0.5, (P, N))).round(2)
GENES = [f"{1000 + j}_at" for j in range(P)]


@pytest.fixture
def put(tmp_path):
    def write(first, header, ids=GENES, cells=CELLS, top=(), name="t.tsv"):
        lines = [[first, *header], *top]
        lines += [[one, *map(str, row)] for one, row in zip(ids, cells.tolist(), strict=True)]
        path = tmp_path / name
        path.write_text("".join("\t".join(line) + "\n" for line in lines), "utf-8")
        return path

    return write


SAMPLES = [f"GSM{i}" for i in range(N)]
WORDS = [f"run{i}x" for i in range(N)]


@pytest.mark.parametrize("first", ["GENES", "gene", "probe", "Gene Symbol", "probe_id", "feature"])
def test_the_name_of_the_first_column_says_so(put, first):
    table = read_table(put(first, WORDS))
    assert table.in_rows
    assert table.turned == f"a first column {first!r}"
    assert list(table.data.index) == WORDS
    assert list(table.data.columns) == GENES
    assert table.labels is None
    np.testing.assert_allclose(table.data, CELLS.T)
    assert table.where(0) == "column 2"


@pytest.mark.parametrize("first", ["GENES", "", "id", "anything"])
def test_names_that_repeat_are_classes(put, first):
    table = read_table(put(first, CLASSES))
    assert list(table.labels) == CLASSES
    assert table.label_column == "the header"
    assert list(table.data.index[:2]) == ["ALL 1", "ALL 2"]
    assert table.data.index.is_unique


def test_names_that_somebody_made_differ_are_classes_too(put):
    counts = {"ALL": 0, "AML": 0}
    header = []
    for name in CLASSES:
        header.append(f"{name}.{counts[name]}" if counts[name] else name)
        counts[name] += 1
    table = read_table(put("", header))
    assert list(table.labels) == CLASSES
    assert list(table.data.index) == header


def test_a_row_with_names_below_classes(put):
    table = read_table(put("class", CLASSES, top=[["probe", *SAMPLES]]))
    assert list(table.data.index) == SAMPLES
    assert (list(table.labels), table.label_column) == (CLASSES, "the header")


SYMBOLS = [*[f"g{j}" for j in range(P - 2)], "Actb", "Tp53"]


@pytest.mark.parametrize("ids", [GENES, [f"ENSG{j:011d}" for j in range(P)], SYMBOLS])
@pytest.mark.parametrize("first", ["Name", "Gen", "ID_REF"])
def test_names_of_genes_say_so_whatever_their_column_is_called(put, first, ids):
    table = read_table(put(first, WORDS, ids))
    assert table.in_rows
    assert list(table.data.columns) == ids


def test_classes_and_nothing_else(put):
    with pytest.raises(TableError, match="no row holds numbers"):
        read_table(put("class", ["1", "2"] * 6, [], CELLS[:0], top=[["class", *["1", "2"] * 6]]))


def write_lines(path, *lines):
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    return path


def test_gct(tmp_path):
    """The size of the table stands above the names."""
    rows = [[name, "na", *row] for name, row in zip(GENES, CELLS, strict=True)]
    header = ["NAME", "Description", *SAMPLES]
    for name in ("t.gct", "t.txt"):
        table = read_table(write_lines(tmp_path / name, ["#1.2"], [P, N], header, *rows))
        np.testing.assert_allclose(table.data, CELLS.T)
        assert (list(table.data.index), list(table.data.columns)) == (SAMPLES, GENES)
        assert "2 lines above the names" in table.notes[0]


@pytest.mark.parametrize("name", ["t.res", "t.txt"])
def test_calls_beside_the_values(tmp_path, name):
    """As in .res files, in which descriptions stand before accession numbers."""
    rows = [
        [f"rat {j}", GENES[j], *(cell for x in CELLS[j] for cell in (x, "PMA"[j % 3]))]
        for j in range(P)
    ]
    header = ["Description", "Accession", *(cell for x in SAMPLES for cell in (x, ""))][:-1]
    lines = [header, ["", ""] + ["scan", ""] * N, [P]]
    table = read_table(write_lines(tmp_path / name, *lines, *rows))
    np.testing.assert_allclose(table.data, CELLS.T)
    assert (list(table.data.index), list(table.data.columns)) == (SAMPLES, GENES)
    assert f"{N} columns of detection calls" in table.notes[0]


@pytest.mark.parametrize("name", ["t.pcl", "t.cdt"])
def test_weights_and_tree_of_a_clustered_file(tmp_path, name):
    sides = [[j // 2, f"rat {j}", 1] for j in range(P)]
    header, weights = ["UNIQID", "NAME", "GWEIGHT", *SAMPLES], ["EWEIGHT", "", "", *[1] * N]
    top = [weights]
    if name == "t.cdt":
        sides = [[f"GENE{j}X", *side] for j, side in enumerate(sides)]
        top = [
            ["AID", "", "", "", *(f"ARRY{i}X" for i in range(N))],
            [*weights[:1], "", *weights[1:]],
        ]
        header = ["GID", *header]
    rows = [[*side, *row] for side, row in zip(sides, CELLS, strict=True)]
    table = read_table(write_lines(tmp_path / name, header, *top, *rows))
    np.testing.assert_allclose(table.data, CELLS.T)
    assert list(table.data.index) == SAMPLES
    assert list(table.data.columns[:3]) == ["0", "0 (2)", "1"]


def test_what_stands_between_names_and_values(tmp_path):
    """As in counts of reads, below a comment, and in a frame of pandas with its row numbers."""
    header = ["Geneid", "Chr", "Start", "End", "Strand", "Length", *WORDS]
    sides = [[f"ENSG{j:011d}", "chr1", 100 * j, 100 * j + 70, "+", 70] for j in range(P)]
    rows = [[*side, *row] for side, row in zip(sides, CELLS, strict=True)]
    table = read_table(write_lines(tmp_path / "t.txt", ["# made by counting"], header, *rows))
    np.testing.assert_allclose(table.data, CELLS.T)
    assert any("'Start', 'End'" in note for note in table.notes)
    rows = [[j, f"g{j}", *row] for j, row in enumerate(CELLS)]
    table = read_table(write_lines(tmp_path / "t.tsv", ["", "gene", *WORDS], *rows))
    np.testing.assert_allclose(table.data, CELLS.T)
    assert list(table.data.columns[:2]) == ["g0", "g1"]


def test_a_series_of_geo(tmp_path):
    """Lines that begin with ! are no cells, also those with as many as there are cases."""
    lines = [["!Series_title", '"rats"'], ["!Sample_title", *SAMPLES], [], ["ID_REF", *SAMPLES]]
    rows = [[name, *row] for name, row in zip(GENES, CELLS, strict=True)]
    path = write_lines(tmp_path / "t.txt", *lines, *rows, ["!series_matrix_table_end"])
    np.testing.assert_allclose(read_table(path).data, CELLS.T)


@pytest.mark.parametrize("ids", [[str(j // 2) for j in range(P)], [*GENES[:-2], "null", "null"]])
def test_whatever_is_in_a_column_of_genes_is_names(put, ids):
    table = read_table(put("GENES", CLASSES, ids))
    assert table.data.shape == (N, P)
    assert table.data.columns.is_unique
    assert table.data.columns[-1] == f"{ids[-1]} (2)"


def test_columns_named_like_cases_and_text_in_front(put):
    words = [f"u{j}z" for j in range(P)]
    assert read_table(put("", SAMPLES, words)).turned.startswith("columns named like cases")
    assert not read_table(put("customer", [f"spend{i}" for i in range(N)], words)).in_rows


def test_very_many_rows_of_columns_that_are_alike(put):
    cells = np.exp(rng.normal(6, 1.5, (1200, 1)) + rng.normal(0, 0.3, (1200, N)))
    ids = [f"u{j}z" for j in range(1200)]
    assert read_table(put("", WORDS, ids, cells)).in_rows
    units = cells * 10.0 ** np.arange(N)  # a table of customers
    assert not read_table(put("", WORDS, ids, units)).in_rows


@pytest.mark.parametrize(
    "names", [[f"gene{j}" for j in range(P)], ["protein", *[f"fat{j}" for j in range(P - 1)]]]
)
@pytest.mark.parametrize("index", [False, True])
def test_features_named_like_genes_do_not_turn_a_table(tmp_path, names, index):
    frame = pd.DataFrame(CELLS.T, WORDS, names)
    frame.to_csv(tmp_path / "t.csv", index=index)
    table = read_table(tmp_path / "t.csv")
    assert not table.in_rows
    np.testing.assert_allclose(table.data, CELLS.T)


def test_a_table_of_results_is_not_turned(put):
    assert not read_table(put("gene", ["logFC", "p", "q"], cells=CELLS[:, :3])).in_rows
    assert not read_table(put("gene", WORDS), features_in_rows=False).in_rows


def test_a_row_of_classes_below_the_header(put):
    table = read_table(put("gene", SAMPLES, top=[["type", *CLASSES]]))
    assert list(table.labels) == CLASSES
    assert table.label_column == "row 'type'"
    np.testing.assert_allclose(table.data, CELLS.T)
    numbers = ["1" if name == "ALL" else "2" for name in CLASSES]
    for label_row in ("type", None):
        table = read_table(put("gene", SAMPLES, top=[["type", *numbers]]), label_row=label_row)
        assert list(table.labels) == numbers
        np.testing.assert_allclose(table.data, CELLS.T)
    table = read_table(put("", SAMPLES, top=[["", *CLASSES]]))
    assert (list(table.labels), table.label_column) == (CLASSES, "line 2")
    with pytest.raises(TableError, match=r"there is no row 'kind', given as label_row"):
        read_table(put("gene", SAMPLES), label_row="kind")


def test_classes_of_another_file(tmp_path):
    ids = ["a", "b", "c", "d"]
    path = tmp_path / "labels.csv"
    path.write_text("sample,type\nd,x\nc,x\nb,y\na,y\nz,y\n")
    found = read_classes(path, ids)
    assert (list(found.labels), found.name, found.by_id) == (["y", "y", "x", "x"], "type", True)
    path.write_text("a,y\nd,x\nc,x\nb,y\n")
    assert list(read_classes(path, ids).labels) == ["y", "y", "x", "x"]
    path.write_text("x\nx\ny\ny\n")
    assert list(read_classes(path, ids).labels) == ["x", "x", "y", "y"]
    path.write_text("type\nx\nx\ny\ny\n")
    assert list(read_classes(path, ids).labels) == ["x", "x", "y", "y"]
    path.write_text("sample,type\na,x\nb,x\nc,y\n")
    with pytest.raises(TableError, match="1 of the cases are not among its ids: 'd'"):
        read_classes(path, ids)
    path.write_text("type\nx\ny\n")
    with pytest.raises(TableError, match="it has 2 rows where the table has 4 cases"):
        read_classes(path, ids)
