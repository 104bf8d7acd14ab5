"""Columns that are no measurements, numbers that stand for missing cells, and more (internal).

Files and data frames are judged by the same rules. A rule looks at a name, at numbers, or at both;
whole numbers alone are no sign, since counts and scores are measurements too.
"""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rskc.utils.wording import count, quoted

LISTS = tomllib.loads(Path(__file__).with_name("columns.toml").read_text("utf-8"))
WORDS = {name: set(words) for name, words in LISTS.items()}
IDS, ALONE, CASES = WORDS["ids"], WORDS["alone"], WORDS["cases"]
CLASSES, OUTCOMES, MEASURES = WORDS["classes"], WORDS["outcomes"], WORDS["measures"]
FEATURES, ANNOTATIONS = WORDS["features"], WORDS["annotations"]
# Words that name cases where they end a name, and its values never repeat: order no, KundenNr.
NUMBERS = {"nr", "no", "nummer"}
# Identifiers of genes and probes, and symbols of genes that hardly any table is without.
OF_FEATURES = re.compile(
    r"\w+_at|AFFX-.+|ENS[A-Z]*[GTP]\d{6,}(\.\d+)?|ILMN_\d+|A_\d+_P\d+|[NX][MRP]_\d+(\.\d+)?"
    r"|IMAGE:\d+|Hs\.\d+|cg\d{8}|rs\d{3,}|hsa-(mir|let)-\w.*",
    re.IGNORECASE,
)
GENES = {"ACTB", "GAPDH", "TP53", "MYC", "EGFR", "CD4", "VIM", "JUN"}
FIRST_DATE, LAST_DATE = 19000101, 21001231  # days as whole numbers
FEWEST_NAMED = 6  # columns that may be cases
WIDER = 3.0  # times that distances between quartiles of cases differ
FEWEST = 4  # cases; of three nothing can be said
LONG = 20  # cases that no measurement counts by chance, wherever the column stands
MOST_CLASSES = 30
# A table with ids of text is perhaps on its side from this many rows on, and rows per column.
MANY_ROWS, ROWS_PER_COLUMN = 1000, 5
# Or if this share of its columns is named like cases, with numbers: sample_1, Patient 2, GSM3.
MOST_COLUMNS = 0.75
LETTERS = {"s", "p", "c", "n", "t"}  # S1, P1: of cases where nothing says what the rows are
# What people write for a missing cell where only numbers fit. 99 is one among short scales only.
CODES = (-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, 99.0, 999.0, 9999.0, 99999.0)
LONGEST_SCALE = 10
NONE = "None"  # a missing number as Python writes it; among words it is one of them
LARGEST_CODED = 999  # of a column in which -9 is a code
FEWEST_CODES = 3  # cells; a single one is rather a slip


class Recognized(NamedTuple):
    """A column of numbers, or text, that is no measurement."""

    name: str
    kind: str  # "id", "class" or "date"
    why: str  # what it does: "counts the cases"
    role: str = "left out"  # or "names", "classes"
    is_text: bool = False


def words_of(name: str) -> list[str]:
    """Split a name into words: sampleID and sample_id are sample and id."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(name))
    return re.findall(r"[^\W\d_]+", spaced.lower())


def is_id_name(name: str) -> bool:
    """Whether a name is that of a column of ids."""
    words = words_of(name)
    if not words or (re.search(r"\d", str(name)) and words != ["unnamed"]):  # a sample; a gene
        return False
    if words[-1] in IDS | NUMBERS or words[-1].endswith("nummer"):
        return True
    return words[0] in ALONE and words[1:] in ([], ["number"])


def is_class_name(name: str) -> bool:
    """Whether a name is that of a column of known classes."""
    words = words_of(name)
    if words == ["y"]:
        return str(name).lower() == "y"
    return bool(words) and words[-1] in CLASSES and not re.search(r"\d$", str(name))


def is_outcome_name(name: str) -> bool:
    """Whether a name is that of an outcome."""
    words = words_of(name)
    return bool(words) and words[-1] in OUTCOMES


def is_feature_name(name: str) -> bool:
    """Whether a name is that of a column with the names of features; gene7 is a feature itself."""
    return bool(FEATURES & set(words_of(name))) and not re.search(r"\d$", str(name))


def are_features(names: Sequence[str | None]) -> bool:
    """Whether names are those of genes or probes, to judge by the names alone."""
    n_known = sum(bool(name and OF_FEATURES.fullmatch(name)) for name in names)
    return 2 * n_known > len(names) or len(GENES & {str(name).upper() for name in names}) >= 2


def classes_of_names(names: Sequence[str]) -> list[str] | None:
    """Return the classes that stand where names are expected, as in published tables; else None.

    ALL, ALL, AML, and ALL, ALL.1, AML as R and pandas make them differ. Few of them are distinct.
    """
    stems = [(re.sub(r"\.\d+$", "", str(name)), str(name)) for name in names]
    known = set(names)  # once: of 24,000 names it took a minute
    classes = [stem if stem in known else name for stem, name in stems]
    n_distinct, n = len(set(classes)), len(classes)
    few = n_distinct <= max(2, min(MOST_CLASSES, n // 2))
    return classes if n >= FEWEST_NAMED and few and all(classes) else None


def are_alike(matrix: np.ndarray) -> bool:
    """Whether columns have about the same quartiles, as cases have over their features."""
    with np.errstate(all="ignore"):
        low, middle, high = np.nanquantile(matrix, (0.25, 0.5, 0.75), axis=0)
    widths = high - low
    typical = float(np.median(widths))
    near = np.abs(middle - np.median(middle)) <= typical
    alike = (widths <= WIDER * typical) & (typical <= WIDER * widths)
    return bool(typical > 0 and np.mean(near & alike) >= MOST_COLUMNS)


def are_classes(n: int, n_distinct: int) -> bool:
    """Whether values are as few as classes are."""
    return 2 <= n_distinct <= max(2, min(MOST_CLASSES, n // 3))


def are_names(n: int, n_distinct: int) -> bool:
    """Whether there are enough values to name the cases: half as many as cases, or more."""
    return n_distinct > 2 and 2 * n_distinct >= n


def same_unit(unit: str) -> str:
    """Return what units that are the same have in common: day and days, KG and kg."""
    return unit.casefold().rstrip("s. ")


def recognize(names: Sequence[str], matrix: np.ndarray) -> dict[int, Recognized]:
    """Return the columns of a table (n_cases, n_columns) that are no measurements, by number."""
    if len(matrix) < FEWEST:
        return {}
    candidates = (matrix[1] - matrix[0] == 1) | (
        (matrix[0] >= FIRST_DATE) & (matrix[0] <= LAST_DATE)
    )
    candidates |= [j == 0 or is_id_name(x) or is_class_name(x) for j, x in enumerate(names)]
    coordinates = ("y", "Y") if {"x", "X"} & set(names) else ()  # beside x, y is one
    columns = {
        j: _recognize_column(str(names[j]), matrix[:, j], is_first=j == 0)
        for j in np.flatnonzero(candidates).tolist()
        if str(names[j]) not in coordinates
    }
    return {j: column for j, column in columns.items() if column is not None}


def _recognize_column(name: str, values: np.ndarray, is_first: bool) -> Recognized | None:
    """Return what a column of numbers is if it is no measurement."""
    seen = values[~np.isnan(values)]
    if len(seen) < FEWEST or (seen != np.floor(seen)).any():
        return None
    days, months = seen % 100, seen // 100 % 100
    in_years = (seen >= FIRST_DATE) & (seen <= LAST_DATE)
    if (in_years & (days >= 1) & (days <= 31) & (months >= 1) & (months <= 12)).all():
        return Recognized(name, "date", f"holds dates such as {seen[0]:.0f}")
    is_complete, is_named = len(seen) == len(values), is_id_name(name)
    n_distinct, n = len(np.unique(seen)), len(values)
    never_repeats = is_complete and n_distinct == n
    counts = never_repeats and bool((np.diff(values) == 1).all())
    is_measure = bool(MEASURES & set(words_of(name)))
    from_start = values[0] in (0, 1) and (is_first or n >= LONG)
    surely_counts = n >= LONG and not is_measure
    grows = never_repeats and is_first and n >= LONG and bool((np.diff(values) > 0).all())
    is_class = is_class_name(name) and are_classes(len(seen), n_distinct)
    signs = (
        ("id", "counts the cases", counts and (is_named or from_start or surely_counts)),
        ("id", "is named like an id", is_named and (never_repeats or words_of(name)[-1] in IDS)),
        ("id", "grows from case to case", grows and not is_measure),
        ("class", "is named like known classes", is_class),
    )
    return next((Recognized(name, kind, why) for kind, why, holds in signs if holds), None)


def sign_of_side(id_name: str | None, n_rows: int, columns: Sequence[str]) -> str | None:
    """Return what suggests that the rows of a table with such ids, of text, are features."""
    if id_name is None:
        return None
    if is_feature_name(id_name):
        return f"a first column {id_name!r}"
    if is_id_name(id_name):
        return None
    words = IDS | ALONE | CASES | (LETTERS if id_name == "" else set())
    numbered = (words_of(name) for name in columns if re.search(r"\d$", str(name)))
    n_named = sum(bool(parts) and parts[0] in words for parts in numbered)
    if n_named >= max(FEWEST, MOST_COLUMNS * len(columns)):
        return f"columns named like cases ({quoted(columns[:2])}, ...)"
    if n_rows >= max(MANY_ROWS, ROWS_PER_COLUMN * len(columns)):
        return f"{count(n_rows, 'row')} and {count(len(columns), 'column')} of numbers"
    return None


class Code(NamedTuple):
    """A number that seems to stand for missing cells, their number, and the columns."""

    value: float
    n_cells: int
    columns: list[int]


def codes_of_missing(matrix: np.ndarray) -> list[Code]:
    """Return the numbers that seem to stand for missing cells, the most frequent one first.

    It is the smallest or largest of a column, and farther from the other cells than these are from
    each other, or the only one below 0, or, if it is -9, the only one without decimals. It makes up
    at most half of the column.
    """
    codes: list[Code] = []
    for value in CODES if len(matrix) else ():
        for code in codes:  # beyond one, there may be another
            matrix = np.where(matrix == code.value, np.nan, matrix)
        ends = (np.fmin if value < 0 else np.fmax).reduce(matrix, axis=0)
        columns = [j for j in np.flatnonzero(ends == value) if _is_apart(matrix[:, j], value)]
        n_cells = int((matrix[:, columns] == value).sum())
        if n_cells >= FEWEST_CODES:
            codes.append(Code(value, n_cells, list(map(int, columns))))
    return sorted(codes, key=lambda code: -code.n_cells)


def _is_apart(column: np.ndarray, value: float) -> bool:
    is_code = column == value
    rest = column[~is_code & np.isfinite(column)]
    if len(rest) < max(FEWEST, int(is_code.sum())):
        return False
    low, high = float(rest.min()), float(rest.max())
    if value == -1:  # of -1, 0 and 1 it is one
        return low >= 0 and high > 10 and is_code.sum() >= FEWEST_CODES
    if value == -9 and high > LARGEST_CODED:  # -9 is a code of short scales
        return False
    if value == 99 and not low < high <= LONGEST_SCALE:
        return False
    is_alone = value == -9 and is_code.sum() > 1 and not (rest == np.floor(rest)).any()
    is_far = min(abs(value - low), abs(value - high)) > high - low
    return is_far or (value < 0 <= low) or is_alone
