"""The documentation site: ``make docs`` builds it into docs/_build/html."""

import os
import re
import shutil
import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"

project = "rskc"
author = "rskc developers"
copyright = "rskc developers, BSD-3-Clause"
version = release = version_of("rskc")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
# Others' objects are not linked: the build needs no network, and a site that is down no retry.
exclude_patterns = ["_build", "reproduction/[!i]*.md"]  # index.md holds the others
templates_path = ["_templates"]
default_role = "code"
suppress_warnings = ["config.cache"]  # the order of the gallery is a class, which is not pickled

# Markdown

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# The reference

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc says the types in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template lists the methods
numpydoc_class_members_toctree = False

LITERAL_OR_NAME = re.compile(r"``.*?``|(?<=[ (])(\w+)_(?=[,)])")


def escape_names(app, what, name, obj, options, lines):
    """Let a word like n_features_in_ be an attribute of scikit-learn's, and no link of reST."""
    for i, line in enumerate(lines):
        lines[i] = LITERAL_OR_NAME.sub(lambda m: f"{m[1]}\\_" if m[1] else m[0], line)


# Reports and explorers, which are made when the site is built; the explorer of the breast-cancer
# example where RSKC_TUMOURS and RSKC_RECEPTOR name its two files (see docs/make_reproduction.py).

TUMOURS, RECEPTOR = (os.environ.get(name) for name in ("RSKC_TUMOURS", "RSKC_RECEPTOR"))
LINK = """
<a href="../breast-cancer-explorer.html">The explorer of the breast-cancer example</a> has fits with
other numbers of clusters and genes.
"""


def add_link(app, page, source):
    """Name the explorer on the page of the reproductions, where it is made."""
    if page == "reproduction/index" and TUMOURS and RECEPTOR:
        source[0] += LINK


def write_pages(app, error):
    """Write reports and explorers beside the pages; those that are there are kept."""
    if error is not None or app.builder.name != "html":
        return
    sys.path.insert(0, str(HERE))
    from make_pages import make_pages

    folder = Path(app.outdir)
    make_pages(folder / "pages")
    page = folder / "breast-cancer-explorer.html"
    if TUMOURS and RECEPTOR and not page.exists():
        sys.path.append(str(Path(__file__).parents[1]))
        from reproduction.outcome import read_column

        from rskc import RowStandardizer, explore
        from rskc.files import read_table

        data = read_table(TUMOURS, id_column="sample").data
        X = RowStandardizer().set_output(transform="pandas").fit_transform(data)
        classes = read_column(Path(RECEPTOR), "ER")
        explore(X, labels=classes, title="Breast cancer: 78 tumours").save(page)


def setup(app):
    """Sphinx calls this."""
    app.connect("source-read", add_link)
    app.connect("build-finished", write_pages)
    app.connect("autodoc-process-docstring", escape_names, priority=900)  # after numpydoc


# The gallery: pages in the order in which they are best read. sphinx-gallery needs a header in the
# same folder; so they are copied to _build with one, and examples/ holds only scripts that run.

ORDER = [
    "plot_first_steps.py",
    "plot_outliers.py",
    "plot_outlying_cells.py",
    "plot_stability.py",
    "plot_choose_k.py",
    "plot_choose_l1.py",
    "plot_choose_trim.py",
    "plot_missing_values.py",
    "plot_pipeline.py",
    "plot_digits.py",
]
HEADER = """
Gallery
=======

Each page is a script of the folder ``examples``, run when this site was built. A click on a picture
leads to the code that drew it.
"""


class Ordered:
    """Sort key of the gallery; pages that ORDER does not know come last, by name."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, name):
        """Return the place of a page."""
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def lay_out(folder):
    """Copy the pages to ``folder``, with a header; unchanged ones are not run again."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for page in EXAMPLES.glob("plot_*.py"):
        shutil.copy(page, folder)
    (folder / "GALLERY_HEADER.rst").write_text(HEADER, "utf-8")
    return str(folder)


sphinx_gallery_conf = {
    "examples_dirs": [lay_out(HERE / "_build" / "examples")],
    "gallery_dirs": ["auto_examples"],
    "within_subsection_order": Ordered,
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("rskc",),
    "reference_url": {"rskc": None},
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1,
    "abort_on_example_error": True,
    "copyfile_regex": "",
    "thumbnail_size": (640, 448),  # shown 400 wide (site.css): text stays legible
}

# The pages

html_theme = "pydata_sphinx_theme"
html_title = f"rskc {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "rskc"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
ALONE = ["index", "tutorial", "coming-from-rskc", "how-it-works", "promises", "contributing"]
ALONE += ["pages", "releasing", "reproduction/index"]
html_sidebars = {page: [] for page in ALONE}  # pages without neighbors need no list of them
copybutton_exclude = ".linenos, .gp, .go"
