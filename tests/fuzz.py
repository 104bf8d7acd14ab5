"""Tables of few values and damaged files, by the thousand: a result or one sentence, each time.

    python tests/fuzz.py tables --most 3000    # of 0 and 1, of 0 to 2, of categories: fitted, used
    python tests/fuzz.py searches --most 100   # searches of every kind on such tables
    python tests/fuzz.py order --most 500      # given centers: the order of many cases
    python tests/fuzz.py files --most 2000     # damaged files of every format, read by the command

It is a tool; ``tests/test_fuzz.py`` runs a few of each. A line is printed for each fault, and at
the end how many of how many there were; the exit code is 1 if there was one. Each damaged file is
read by the command line in a process of its own, so that a signal is seen. To pay for imports only
once, that process is a fork of this one, which has imported everything and run nothing.
"""

import argparse
import contextlib
import gzip
import hashlib
import io
import itertools
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

# ---- Tables of few values


def few_valued(rng: np.random.Generator) -> Any:
    """Draw a small table of 0 and 1, of 0 to 2, or of categories."""
    import pandas as pd

    n, p = int(rng.integers(8, 120)), int(rng.integers(1, 16))
    most = int(rng.integers(1, 3))
    chances = rng.dirichlet(np.ones(most + 1), size=p)
    cells = np.stack([rng.choice(most + 1, n, p=chance) for chance in chances], axis=1)
    if rng.random() < 0.3:
        return pd.DataFrame(np.array(["low", "middle", "high"])[cells]).astype("category")
    table = cells.astype(rng.choice([np.float32, np.float64, np.int64]))
    if rng.random() < 0.2:
        table = table.astype(float)
        table[rng.random(table.shape) < 0.1] = np.nan
    return table


def settings(rng: np.random.Generator) -> dict[str, Any]:
    """Draw parameters, most of them left as they are."""
    levels: dict[str, list[Any]] = {
        "trim": ["auto", "auto", 0.0, 0.1],
        "cells": ["auto", "auto", None, 3.0],
        "l1_bound": ["auto", "auto", None, "half", 1.0],
        "reweight": [False, False, True],
        "n_init": ["auto", 1],
    }
    return {name: some[rng.integers(len(some))] for name, some in levels.items()}


def fit_and_use(seed: int) -> str | None:
    """Fit a table, and do all that predicts and describes; return what went wrong."""
    from rskc import RobustSparseKMeans, load, save
    from rskc.exceptions import ParameterError

    rng = np.random.default_rng([seed, 1])
    X, given = few_valued(rng), settings(rng)
    K = int(rng.integers(1, 7))
    try:
        model = RobustSparseKMeans(K, random_state=seed, n_threads=1, **given).fit(X)
        used = [model.predict(X), model.transform(X), model.score_samples(X), model.score(X)]
        model.summary(), model.features_frame(), model.cases_frame(X), model.markers_frame(X)
        if any(np.isnan(np.asarray(each)).any() for each in used):
            return f"NaN for K={K}, {given}"
        with tempfile.TemporaryDirectory() as folder:
            save(model, Path(folder, "model.rskc"))
            load(Path(folder, "model.rskc"))
    except ParameterError as error:
        if error.parameter == "n_clusters":  # fewer cases than clusters after trimming
            return None
        return f"{error} for K={K}, {given}"
    except Exception as error:
        return f"{type(error).__name__}: {error} for K={K}, {given}"
    return None


def search(seed: int) -> str | None:
    """Search with one kind after another, the first with nothing given; return what went wrong.

    The others may refuse a table, in one sentence.
    """
    from rskc import RobustSparseKMeans
    from rskc.selection import Clest, GapL1, GridSearch, Stability

    rng = np.random.default_rng([seed, 2])
    X = few_valued(rng)
    model = RobustSparseKMeans(int(rng.integers(1, 4)), trim=rng.choice([0, 0.1, 0.4]), n_init=2)
    kinds = (
        Stability(RobustSparseKMeans()),
        Clest(model, [2, int(rng.integers(2, 6))], n_splits=2, n_references=2, level=0.4),
        GapL1(model, [3, [1.0], [1.2, 2.0]][seed % 3], n_permutations=2),
        GridSearch(model, [None, [2, 3]][seed % 2], [None, 2, [1.1]][seed % 3], [0, 0.3]),
    )
    search = kinds[seed % 4].set_params(random_state=seed, n_jobs=1, progress=False)
    try:
        search.fit(X)
    except (ValueError, TypeError) as error:
        if seed % 4 == 0 or "\n" in str(error) or not str(error).endswith("."):
            return f"{type(error).__name__}: {error} for a table of {X.shape}"
    except Exception as error:
        return f"{type(error).__name__}: {error} for a table of {X.shape}"
    return None


# ---- The order of the cases


def permute(seed: int) -> str | None:
    """Fit a table of at least 1,200 cases from given centers, in two orders; compare labels."""
    from sklearn.metrics import adjusted_rand_score

    from rskc import RobustSparseKMeans

    rng = np.random.default_rng([seed, 3])
    n, p = int(rng.integers(1200, 3000)), int(rng.choice([2, 5, 12, 30]))
    K = int(rng.choice([2, 5]))
    X = rng.normal(size=(n, p))
    if rng.random() < 0.5:
        X[:, : p // 2] += 2 * rng.normal(size=(K, p // 2))[rng.integers(K, size=n)]
    if rng.random() < 0.25:
        X[rng.random(X.shape) < 0.1] = np.nan
    given = settings(rng) | {"n_init": 1, "init": np.nan_to_num(X[rng.choice(n, K, replace=False)])}
    order = rng.permutation(n)
    straight, permuted = (
        RobustSparseKMeans(K, random_state=0, n_threads=1, **given).fit(Z) for Z in (X, X[order])
    )
    n_other = int((straight.labels_[order] != permuted.labels_).sum())
    if not n_other:
        return None
    index = adjusted_rand_score(straight.labels_[order], permuted.labels_)
    del given["init"]
    return f"{n_other} labels, ARI {index:.2f}, of {n} x {p} with K={K}, {given}"


# ---- Damaged files

NEEDED = ("anndata", "dask", "openpyxl", "polars", "pyarrow", "python_calamine", "rich", "typer")

NUMBERS = (b"", b"-1", b"99999999999999999999", b"1e400", b"2147483648", b"NaN", b"0x1F")
LONGEST = 60  # seconds that a file may take
MOST_BYTES = 5 << 30  # that reading it may take: HDF5 makes chunks of up to 4 GiB


def make_good_files(folder: Path) -> None:
    """Write a good file of each format."""
    import anndata
    import pandas as pd
    from scipy.io import mmwrite
    from scipy.sparse import csr_array

    from rskc.cli import main

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5)) + 5 * (np.arange(40) % 2)[:, None]
    frame = pd.DataFrame(X.round(3), columns=list("abcde"))
    frame.insert(0, "id", [f"case {i}" for i in range(40)])
    frame["kind"] = np.where(X[:, 0] > 2, "x", "y")
    frame.to_csv(folder / "good.csv", index=False)
    frame.to_csv(folder / "good.tsv.gz", index=False, sep="\t")
    frame.to_excel(folder / "good.xlsx", index=False)
    frame.to_parquet(folder / "good.parquet", index=False)
    frame.to_feather(folder / "good.feather")
    np.save(folder / "good.npy", X)
    np.savez(folder / "good.npz", X=X, feature_names=np.array(list("abcde")))
    mmwrite(folder / "good.mtx", csr_array(X * (X > 1)))
    packed = gzip.compress((folder / "good.mtx").read_bytes(), mtime=0)
    (folder / "packed.mtx.gz").write_bytes(packed)
    obs = pd.DataFrame({"kind": frame["kind"].to_numpy()}, index=frame["id"].to_numpy())
    anndata.AnnData(X, obs=obs).write_h5ad(folder / "good.h5ad")
    (folder / "good.gmt").write_text("one\tfirst\ta\tb\ntwo\tsecond\tc\td\n")
    (folder / "good.gmt.gz").write_bytes(gzip.compress((folder / "good.gmt").read_bytes()))
    for words in (
        ["fit", "good.csv", "-k", "2", "--no-report", "--out", "fitted"],
        [*SELECT, "--checkpoint", "good.db"],
    ):
        sys.argv = ["rskc", *words, "--quiet"]
        os.chdir(folder)
        with contextlib.suppress(SystemExit):
            main()
    shutil.copy(folder / "fitted" / "model.rskc", folder / "good.rskc")


SELECT = ["select-k", "good.csv", "--clusters", "2-3", "--splits", "2", "--references", "3"]
SELECT += ["--jobs", "1"]
FIT = ["--clusters", "2", "--n-init", "1", "--no-report", "--threads", "1", "--out", "results"]
FIT += ["--text-columns", "drop"]
# Of each format the command that reads a damaged file, which stands where ``{}`` does.
TABLES = ("csv", "tsv.gz", "xlsx", "parquet", "feather", "npy", "npz", "mtx", "h5ad")
TABLES = (*(f"good.{suffix}" for suffix in TABLES), "packed.mtx.gz")
COMMANDS: dict[str, list[str]] = {
    **{name: ["fit", "{}", *FIT] for name in TABLES},
    **{f"blocks.{kind}": ["fit", "{}", *FIT, "--engine", "dask"] for kind in ("npy", "parquet")},
    **{name: ["fit", "good.csv", *FIT, "--groups", "{}"] for name in ("good.gmt", "good.gmt.gz")},
    "good.rskc": ["predict", "{}", "good.csv", "--out", "-"],
    "report.rskc": ["report", "{}", "good.csv", "--out", "page.html"],
    "good.db": [*SELECT, "--checkpoint", "{}"],
}


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a file's bytes with some of them changed, gone, doubled or new."""
    raw, n = bytearray(data), len(data)
    for _ in range(rng.integers(1, 4)):
        start = int(rng.integers(max(len(raw), 1)))
        end = start + int(rng.integers(1, 1 + max(1, min(n // 4, int(10 ** rng.uniform(0, 4))))))
        kind = rng.integers(8)
        if kind == 0:
            for place in rng.integers(max(len(raw), 1), size=rng.integers(1, 9)):
                raw[place : place + 1] = bytes([rng.integers(256)])
        elif kind == 1:
            del raw[start:]
        elif kind == 2:
            raw[start:end] = bytes(len(raw[start:end]))
        elif kind == 3:
            del raw[start:end]
        elif kind == 4:
            raw[start:start] = rng.bytes(end - start)
        elif kind == 5:
            raw[start:start] = raw[start:end]
        elif kind == 6:
            raw[start:start] = b"\0" * (end - start)
        else:
            numbers = list(re.finditer(rb"[0-9.]+", bytes(raw)))
            if numbers:
                found = numbers[rng.integers(len(numbers))]
                raw[slice(*found.span())] = NUMBERS[rng.integers(len(NUMBERS))]
    return bytes(raw)


def damaged_file(name: str, data: bytes, rng: np.random.Generator) -> bytes:
    """Damage a file as it is, or what is packed in it, with checksums that are right."""
    if rng.random() < 0.4:
        return damaged(data, rng)
    if name.endswith(".gz"):
        return gzip.compress(damaged(gzip.decompress(data), rng), mtime=0)
    if not data.startswith(b"PK"):
        return damaged(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {each: archive.read(each) for each in archive.namelist()}
        comment, kind = archive.comment, archive.infolist()[0].compress_type
    some = list(files)[rng.integers(len(files))]
    files[some] = damaged(files[some], rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        archive.comment = comment
        for each, content in files.items():
            archive.writestr(each, content)
    made = buffer.getvalue()
    if len(comment) != 64:
        return made
    return made[:-64] + hashlib.sha256(made[:-64]).hexdigest().encode()


def read_damaged(good: Path, name: str, seed: int) -> str | None:
    """Let the command read a damaged file; return what went wrong."""
    rng = np.random.default_rng([seed, *name.encode()])
    source = name.replace("blocks", "good").replace("report", "good")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(good / "good.csv", folder)
        file = Path(folder, f"damaged-{name}")
        file.write_bytes(damaged_file(name, (good / source).read_bytes(), rng))
        command = [file.name if word == "{}" else word for word in COMMANDS[name]]
        return outcome(command, folder)


def outcome(command: list[str], folder: str) -> str | None:
    """Run the command in a fork; return what is wrong with its end, if anything is."""
    child = os.fork()
    if child == 0:
        run_and_leave(command, folder)
    end = time.monotonic() + LONGEST
    while not (found := os.wait4(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.wait4(child, 0)
            return f"takes more than {LONGEST} s"
        time.sleep(0.01)
    _, status, usage = found
    printed = Path(folder, "printed").read_text(errors="replace")
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    code = os.waitstatus_to_exitcode(status)
    last = printed.strip().splitlines()[-1:] or [""]
    if usage.ru_maxrss << 10 > MOST_BYTES:
        return f"takes {usage.ru_maxrss >> 10} MiB"
    for words in ("Traceback", "should not happen"):
        if words in printed:
            return f"{words}: {last[0]}"
    if code not in (0, 1, 2) or (code == 1 and not last[0].startswith("rskc: ")):
        return f"exit code {code}: {last[0]}"
    return None


def run_and_leave(command: list[str], folder: str) -> None:
    """Run the command line in this process, its output in a file, and end the process."""
    import resource

    os.chdir(folder)
    printed = os.open("printed", os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(printed, stream)
    resource.setrlimit(resource.RLIMIT_AS, (4 * MOST_BYTES, 4 * MOST_BYTES))
    sys.argv = ["rskc", *command]
    code: Any = 1
    try:
        from rskc.cli import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def import_everything() -> None:
    """Import what the command would; nothing is run, so that no thread is lost in a fork."""

    import rskc.cli._blocks
    import rskc.cli._commands
    import rskc.estimator
    import rskc.files
    import rskc.report
    import rskc.selection  # noqa: F401


def file_faults(seeds: range, only: str) -> Iterator[tuple[str, str | None]]:
    """Read damaged files, format by format in turn."""
    import_everything()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()  # threads of the libraries that write stay there
        if child == 0:
            try:
                make_good_files(Path(folder))
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        names = itertools.cycle([name for name in COMMANDS if only in name])
        for seed, name in zip(seeds, names, strict=False):
            yield f"{name} {seed}", read_damaged(Path(folder), name, seed)


# ---- All of them

EACH: dict[str, Callable[[int], str | None]] = {
    "tables": fit_and_use,
    "searches": search,
    "order": permute,
}


def faults(kind: str, seeds: range, only: str = "") -> Iterator[tuple[str, str | None]]:
    """Yield the name of each trial, and what went wrong in it."""
    if kind == "files":
        yield from file_faults(seeds, only)
        return
    warnings.simplefilter("ignore")
    for seed in seeds:
        yield f"{kind} {seed}", EACH[kind](seed)


def main() -> int:
    """Run the trials that were asked for, and print the faults."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=[*EACH, "files"])
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--most", type=int, default=100, help="how many")
    parser.add_argument("--only", default="", help="files whose name has this in it")
    given = parser.parse_args()
    seeds, n_faults, n = range(given.first, given.first + given.most), 0, 0
    for name, words in faults(given.kind, seeds, given.only):
        n += 1
        if words is not None:
            n_faults += 1
            print(json.dumps([name, words]), flush=True)
    print(f"{n_faults} of {n:,}")
    return n_faults > 0


if __name__ == "__main__":
    sys.exit(main())
