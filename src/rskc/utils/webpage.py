"""What the pages of HTML share: a file that is whole or not there, a frame in a notebook, a policy.

Internal. A page is one file that fetches nothing and runs no script but its own.
"""

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from rskc.utils.atomic import atomic_write
from rskc.utils.wording import cleaned

# Where a page says what it is, at its beginning, and where it links to the pages beside it.
IDENTITY = '<meta name="rskc-page" content="{kind} {numbering}">'
IDENTITY_OF = re.compile(IDENTITY.format(kind=r"(\w+)", numbering="([0-9a-f]+)"))
BESIDE = "<!--beside--><!--/beside-->"
BESIDE_OF = re.compile("<!--beside-->.*?<!--/beside-->", re.DOTALL)
FIRST_CHARACTERS = 4000
WORDS = {
    "report": "The report: what these clusters mean",
    "explorer": "The explorer: all other settings",
}


class Page:
    """A page of HTML, and its title."""

    html: str
    title: str

    def save(self, path: Any) -> Path:
        """Write the page to a file, whole or not at all.

        Parameters
        ----------
        path : str or path
            Where to; a file that is there is replaced. Report and explorer of the same clusters
            in one folder are linked to each other.

        Returns
        -------
        path : Path
        """
        with atomic_write(path, "w") as file:
            file.write(self.html)
        link_pages(Path(path).parent)
        return Path(path)

    def _repr_html_(self) -> str:
        """In a notebook: the page in a frame, so that its style stays inside."""
        page, title = html.escape(self.html), html.escape(self.title)
        return (
            f'<iframe srcdoc="{page}" title="{title}"'
            ' style="width:100%;height:80vh;min-height:600px;border:1px solid #ccc"></iframe>'
        )


def identity(kind: str, labels: Any) -> str:
    """Say of a page what it is and how it numbers clusters: a digest of the labels."""
    digest = hashlib.sha256(np.asarray(labels).astype("<i4").tobytes()).hexdigest()
    return IDENTITY.format(kind=kind, numbering=digest[:32])


def link_pages(folder: Path) -> None:
    """Link the pages in a folder that number the same clusters alike, and no others."""
    pages = []  # with what they say of themselves: their kind, and how they number clusters
    for path in sorted(folder.glob("*.html")):
        with (
            suppress(OSError, UnicodeDecodeError),
            path.open(encoding="utf-8", newline="") as file,
        ):
            found = IDENTITY_OF.search(file.read(FIRST_CHARACTERS))
            if found is not None and found[1] in WORDS:
                pages.append((path, found[1], found[2]))
    for path, kind, numbering in pages:
        links = " ".join(
            f'<a href="./{quote(other.name)}">{WORDS[its_kind]}</a>'
            for other, its_kind, its_numbering in pages
            if its_numbering == numbering and its_kind != kind
        )
        with path.open(encoding="utf-8", newline="") as file:
            before = file.read()
        start, end = BESIDE.split("><")
        old = BESIDE_OF.search(before)
        after = before if old is None else before.replace(old[0], f"{start}>{links}<{end}", 1)
        if after != before:
            with suppress(OSError), atomic_write(path, "w") as file:
                file.write(after)


def content_policy(scripts: Iterable[str]) -> str:
    """Content-Security-Policy: these scripts and no others run, and nothing is fetched."""
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


def embedded_json(value: Any) -> str:
    """JSON that can stand in a script element: nothing in it ends the element or opens another."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def clean_names(names: Iterable[Any], width: int = 120) -> list[str]:
    """Return names that any browser can show."""
    return [cleaned(name, width) for name in names]


def plain_numbers(values: Any, digits: int = 4) -> list:
    """Return numbers for JSON: this many significant digits, None for what is not finite."""
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        return array.astype(int).tolist()
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in array.tolist()]
