"""The script that draws the charts: Vega, Vega-Lite and Vega-Embed in one, 0.9 MB.

vl-convert takes two seconds to put it together, which is longer than most fits. So it is kept in
the cache folder of the user, under the version it is of and with its digest.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from rskc.atomic import atomic_write

SNIPPET = "window.vegaEmbed = vegaEmbed;"


@cache
def vega_script() -> str:
    """Return the script; raises ImportError without vl-convert."""
    import vl_convert

    kept = _cache_folder() / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError, UnicodeDecodeError):
        digest, _, script = kept.read_text("utf-8").partition("\n")
        if digest == _digest(script):
            return script
    script = _closed(vl_convert.javascript_bundle(SNIPPET))
    with suppress(OSError):  # a folder that cannot be written to costs two seconds each time
        kept.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(kept, "w") as file:
            file.write(f"{_digest(script)}\n{script}")
    return script


def _cache_folder() -> Path:
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA")
    else:
        home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "rskc"


def _digest(script: str) -> str:
    return "// sha256 " + hashlib.sha256(script.encode()).hexdigest()


def _closed(script: str) -> str:
    """A script that nothing in it ends; as it is written, both can only be inside of strings."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("\r\n", "\n")
