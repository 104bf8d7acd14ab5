"""Count the Python code of the package: lines without docstrings, comments and blanks; functions.

``python tests/size.py`` prints a line for each room, and the modules at the top.
"""

import ast
import io
import sys
import tokenize
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "rskc"
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
SILENT |= {tokenize.ENDMARKER, tokenize.ENCODING}


class Size(NamedTuple):
    """Lines of code, functions, and functions whose body has three lines or less."""

    lines: int
    functions: int
    short: int


def docstring_lines(tree: ast.AST) -> set[int]:
    """Return the numbers of the lines that docstrings take."""
    kinds = (ast.Module, ast.ClassDef, *DEFINITIONS)
    first = (node.body[0] for node in ast.walk(tree) if isinstance(node, kinds) and node.body)
    texts = (node for node in first if isinstance(node, ast.Expr))
    texts = (node for node in texts if isinstance(getattr(node.value, "value", None), str))
    return {line for node in texts for line in range(node.lineno, node.end_lineno + 1)}


def code_lines(text: str, tree: ast.AST) -> set[int]:
    """Return the numbers of the lines with code."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = ((t.start[0], t.end[0]) for t in tokens if t.type not in SILENT)
    return {line for a, b in spans for line in range(a, b + 1)} - docstring_lines(tree)


def size_of(path: Path) -> Size:
    """Measure a file."""
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    lines, silent = code_lines(text, tree), docstring_lines(tree)
    bodies = [node for node in ast.walk(tree) if isinstance(node, DEFINITIONS)]
    spans = [range(node.body[0].lineno, node.end_lineno + 1) for node in bodies]
    lengths = [len(lines.intersection(span) - silent) for span in spans]
    return Size(len(lines), len(bodies), sum(length <= 3 for length in lengths))


def total(paths: list[Path]) -> Size:
    """Add up files."""
    return Size(*(sum(column) for column in zip(*map(size_of, paths), strict=True)))


def main(source: Path = SOURCE) -> None:
    """Print the sizes of all rooms, and the modules at the top."""
    rooms = sorted({path.relative_to(source).parts[0] for path in source.rglob("*.py")})
    for room in rooms:
        path = source / room
        files = [path] if path.is_file() else sorted(path.rglob("*.py"))
        print("{:20} {:6} {:5} {:5}".format(room, *total(files)))
    print("{:20} {:6} {:5} {:5}".format("all", *total(sorted(source.rglob("*.py")))))
    print("modules at the top", len(list(source.glob("*.py"))))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
