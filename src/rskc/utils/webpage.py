"""What the pages of HTML share: a file that is whole or not there, a frame in a notebook, a policy.

Internal. A page is one file that fetches nothing and runs no script but its own.
"""

import base64
import hashlib
import html
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rskc.utils.atomic import atomic_write
from rskc.utils.wording import cleaned


class Page:
    """A page of HTML, and its title."""

    html: str
    title: str

    def save(self, path: Any) -> Path:
        """Write the page to a file, whole or not at all.

        Parameters
        ----------
        path : str or path
            Where to; a file that is there is replaced.

        Returns
        -------
        path : Path
        """
        with atomic_write(path, "w") as file:
            file.write(self.html)
        return Path(path)

    def _repr_html_(self) -> str:
        """In a notebook: the page in a frame, so that its style stays inside."""
        page, title = html.escape(self.html), html.escape(self.title)
        return (
            f'<iframe srcdoc="{page}" title="{title}"'
            ' style="width:100%;height:80vh;min-height:600px;border:1px solid #ccc"></iframe>'
        )


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
