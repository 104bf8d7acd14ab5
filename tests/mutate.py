"""Change one operator or number of the sources at a time, and see whether a test notices.

    python tests/mutate.py --most 60 --seed 1 solver/alternate.py metrics.py

A trial by hand, not a test. Each mutant is a copy of the package in which one place differs:
``<`` is ``<=``, ``+`` is ``-``, ``and`` is ``or``, a number is one more, and the like. The test
files of its module run until the first failure. What survives is printed: a number that only
tunes, a change that changes nothing, or something that deserves a test. Constants in capitals are
left out, since tuning numbers stand there.
"""

import argparse
import ast
import random
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from package_copy import ROOT, SOURCE, copy_package, run_tests
from rskc.engines.passes import PASSES

# Test files that speak of a folder or a module, those that fail soonest first; before them the one
# that is named like the mutant's module.
TESTS = {
    "solver": ("solver_rules", "solver", "split_merge", "estimator", "missing", "automatic"),
    "metrics.py": ("metrics", "reviewed"),
    "estimator.py": ("estimator", "sklearn", "bad_input", "fitted", "automatic"),
    "selection": ("search", "clest", "gap", "grid", "stability", "reviewed"),
    "comparison.py": ("comparison", "reviewed"),
    "markers.py": ("markers", "reviewed"),
    "model": ("reviewed", "fitted", "automatic", "cells", "missing", "estimator", "groups"),
    "inputs": ("reviewed", "frames", "bad_input", "columns", "categories", "sample_weight"),
    "preprocessing": ("preparation", "preprocessing"),
    "engines": ("passes", "engines", "engine_contract"),
    "files": ("reviewed", "files", "files_formats", "files_models", "files_writing"),
    "pictures": ("reviewed", "displays", "displays_selection", "report"),
    "displays": ("displays", "displays_selection"),
    "report": ("reviewed", "report", "report_cells"),
    "explorer": ("explorer", "explorer_cli"),
    "cli": ("cli_words", "cli", "cli_dask"),
}
SECONDS = 300  # a mutant that takes longer is noticed: it does not end
BINARY = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*"}
BINARY |= {ast.Pow: "*", ast.BitAnd: "|", ast.BitOr: "&"}
COMPARE = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
COMPARE |= {ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "argmin": "argmax"}
NAMES |= {"argmax": "argmin", "minimum": "maximum", "maximum": "minimum", "zeros": "ones"}


class Mutant(NamedTuple):
    """A module in which one place differs."""

    module: str
    line: int
    before: str
    after: str
    source: str


def mutants_of(module: str) -> list[Mutant]:
    """Return all mutants of a module."""
    source = (SOURCE / module).read_text()
    found = []
    for node in _code(ast.parse(source)):
        for part, text in _changes(node):
            before = ast.get_source_segment(source, part)
            start, end = _span(source, part)
            changed = source[:start] + text(before) + source[end:]
            found.append(Mutant(module, part.lineno, before, text(before), changed))
    return found


def _code(node: ast.AST):
    """Yield the nodes that are run: no annotations, messages, loggers or constants in capitals."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
            continue
        if isinstance(child, ast.Assign) and isinstance(node, ast.Module):
            continue
        if isinstance(child, ast.Call) and ast.unparse(child.func).startswith("log."):
            continue
        if child is getattr(node, "annotation", None) or child is getattr(node, "returns", None):
            continue
        yield child
        yield from _code(child)


def _changes(node: ast.AST):
    """Yield (part of the source, function that changes its text)."""
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        yield node, _joined(node.left, BINARY[type(node.op)], node.right)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARE:
        yield node, _joined(node.left, COMPARE[type(node.ops[0])], node.comparators[0])
    elif isinstance(node, ast.BoolOp):
        word = "or" if isinstance(node.op, ast.And) else "and"
        yield node, lambda _: "(" + f" {word} ".join(map(ast.unparse, node.values)) + ")"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert | ast.USub):
        yield node, lambda _: f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        other = not node.value if isinstance(node.value, bool) else node.value + 1
        yield node, lambda _: repr(other)
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield node, lambda _: NAMES[node.id]
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield node, lambda before: before[: -len(node.attr)] + NAMES[node.attr]


def _joined(left: ast.expr, operator: str, right: ast.expr):
    return lambda _: f"(({ast.unparse(left)}) {operator} ({ast.unparse(right)}))"


def _span(source: str, node: ast.expr) -> tuple[int, int]:
    lines = source.splitlines(keepends=True)

    def place(line: int, column: int) -> int:
        return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())

    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)


def is_noticed(mutant: Mutant) -> bool:
    """Whether a test fails, or does not end, with this mutant."""
    names, first = TESTS[mutant.module.split("/")[0]], Path(mutant.module).stem
    if any((ROOT / "tests").rglob(f"test_{first}.py")):
        names = tuple(dict.fromkeys([first, *names]))
    compiled = Path(PASSES.__file__)
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_package(Path(folder), None if compiled.suffix == ".py" else compiled)
        (copy / mutant.module).write_text(mutant.source)
        options = {"env": {"OMP_NUM_THREADS": "1", "CI": "1"}, "timeout": SECONDS}
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        try:
            return run_tests(Path(folder), names, "-x", "-q", **options, **silent) != 0
        except subprocess.TimeoutExpired:
            return True


def main() -> None:
    """Run mutants of the modules or folders that are named, or of all that TESTS knows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=list(TESTS), help="files or folders of rskc")
    parser.add_argument("--most", type=int, default=60, help="mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    paths = [SOURCE / name for name in options.modules]
    files = {file for path in paths for file in ([path] if path.suffix else path.glob("*.py"))}
    every = [m for file in sorted(files) for m in mutants_of(file.relative_to(SOURCE).as_posix())]
    some = random.Random(options.seed).sample(every, min(options.most, len(every)))
    print(f"{len(some)} of {len(every)} mutants", flush=True)
    survivors = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, noticed in zip(some, pool.map(is_noticed, some), strict=True):
            if not noticed:
                survivors += 1
                print(
                    f"{mutant.module}:{mutant.line}: {mutant.before} -> {mutant.after}", flush=True
                )
    print(f"{len(some) - survivors} of {len(some)} noticed", flush=True)


if __name__ == "__main__":
    main()
