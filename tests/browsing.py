"""A real browser for the tests of pages: Debian's chromium, driven by playwright.

Skipped where one of the two is missing. ``RSKC_CHROMIUM`` names another executable, and
``RSKC_REQUIRE_BROWSER=1`` makes a missing browser an error.
"""

import base64
import json
import os
import re
import shutil
import time
import zlib
from pathlib import Path

import pytest

REQUIRED = os.environ.get("RSKC_REQUIRE_BROWSER") == "1"
CHROMIUM = os.environ.get("RSKC_CHROMIUM") or shutil.which("chromium") or ""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NASTY = [
    "<script>window.hacked = 1</script>",
    "</script><img src=x onerror='window.hacked = 2'>",
    "=cmd()",
    '"quoted", comma',
    "שלום",
    "🧬 {{7*7}}",
    "long " * 2000,
    "-1 minus",
]


def skip_without_browser():
    if not REQUIRED and not CHROMIUM:
        pytest.skip("no chromium on the PATH, nor in RSKC_CHROMIUM", allow_module_level=True)


def started_browser():
    """Start one, and yield it."""
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=CHROMIUM or None, args=FLAGS)
        except Error as error:
            if REQUIRED:
                raise
            pytest.skip(f"chromium does not start: {error.message.splitlines()[0]}")
        yield started
        started.close()


def wait_until(holds, seconds=60):
    """Ask again and again; playwright's wait_for_function needs eval, which the page forbids."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


# Elements that reach beyond the page, and text that is cut; what scrolls may be wider.
CUT = """() => [...document.querySelectorAll("body *")].filter((each) => {
  const style = getComputedStyle(each), box = each.getBoundingClientRect();
  if (!box.width || !box.height || style.visibility === "hidden") return false;
  if (each.closest("svg, canvas, script, style, .quiet, .skip, noscript")) return false;
  const text = [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  const hides = ["hidden", "clip"].includes(style.overflowX);
  const beyond = box.right > innerWidth + 0.5 || box.left < -0.5;
  return (text && hides && each.scrollWidth > each.clientWidth + 1)
    || (beyond && !each.closest(".scroll, pre"));
}).map((each) => `${each.tagName}.${each.className}: ${each.textContent.slice(0, 40)}`)"""
AXE = Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js"


def assert_well_set(browser, path, width, scheme="light"):
    """See that a page of this width cuts nothing, complains of nothing and is accessible.

    The rules of axe-core are asked where npm install was run.
    """
    look = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    with Watch(browser, path, bypass_csp=True, **look) as watch:
        watch.page.locator("details").evaluate_all("all => all.forEach((one) => (one.open = true))")
        assert watch.page.evaluate("document.documentElement.scrollWidth") <= width
        assert watch.page.evaluate(CUT) == []
        assert watch.complaints == []
        if AXE.exists():
            watch.page.add_script_tag(path=AXE)
            found = watch.page.evaluate("axe.run()")["violations"]
            assert [
                (each["id"], each["nodes"][0]["target"])
                for each in found
                if each["impact"] in ("serious", "critical")
            ] == []


def content_of(html):
    """What a browser reads from the explorer: the words, and the arrays as bytes."""
    text = re.search(r'id="data">([^<]*)<', html)[1]
    content = zlib.decompress(base64.b64decode(text))
    length = int.from_bytes(content[:8], "little")
    words, rest = json.loads(content[8 : 8 + length]), content[8 + length :]
    places = words["arrays"].items()
    return words, {name: rest[first : first + size] for name, (first, size) in places}


class Watch:
    """A page, what it said on the console, and what it asked of the network."""

    def __init__(self, browser, path, hash="", **look):
        look = {"viewport": {"width": 1200, "height": 900}} | look
        self.context = browser.new_context(**look)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri() + hash)
        self.page.wait_for_selector("html[data-ready=yes]", timeout=60_000)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()

    def count(self, selector):
        return self.page.locator(selector).count()
