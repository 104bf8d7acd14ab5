"""A real browser for the tests of pages: Debian's chromium, driven by playwright.

Skipped where one of the two is missing. ``RSKC_CHROMIUM`` names another executable, and
``RSKC_REQUIRE_BROWSER=1`` makes a missing browser an error.
"""

import os
import shutil
import time

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
