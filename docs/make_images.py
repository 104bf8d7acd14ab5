"""Make ``docs/images``: the figure of the README, and the pages of ``rskc demo`` in a browser.

    python docs/make_images.py

Needs chromium on the PATH and the packages of the group ``test``.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
IMAGES = HERE / "images"
EXAMPLE = HERE.parent / "examples" / "plot_first_steps.py"
SIZE = {"width": 1120, "height": 2560}
EXPLORER_SIZE = {"width": 1380, "height": 1180}


def main() -> None:
    """Draw the figure, and take pictures of the pages."""
    subprocess.run([sys.executable, EXAMPLE, IMAGES / "first-steps.png"], check=True)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        demo = [sys.executable, "-m", "rskc", "demo", "--out", folder, "--force", "--quiet"]
        subprocess.run(demo, check=True)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=SIZE, device_scale_factor=0.5)
        page.goto(next(Path(folder).rglob("report.html")).as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        page.screenshot(path=IMAGES / "report.png")
        page = browser.new_page(viewport=EXPLORER_SIZE, device_scale_factor=1)
        page.goto(next(Path(folder).rglob("*explorer.html")).as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        page.screenshot(path=IMAGES / "explorer.png")
        browser.close()


if __name__ == "__main__":
    main()
