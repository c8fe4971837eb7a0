"""Settings of the documentation's site: ``sphinx-build -W docs docs/_build``."""

import re
import sys
from pathlib import Path

from hybrid_nbody import __version__

sys.path.append(str(Path(__file__).parent))
import notebooks  # noqa: E402  # beside this file

project = "hybrid_nbody"
author = "the hybrid_nbody authors"
copyright = "the hybrid_nbody authors"  # Sphinx's name
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "README.md"]
source_suffix = {".md": "markdown"}

myst_heading_anchors = 4
myst_fence_as_directive = []
suppress_warnings = ["myst.xref_missing"]  # links out of docs/, which a repository's page follows

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_default_options = {"no-value": True}

html_theme = "alabaster"
html_title = f"hybrid_nbody {release}"
html_theme_options = {
    "description": f"Gravity and stable fluids from a laptop to a cluster. Version {release}",
    "fixed_sidebar": True,
    "page_width": "1260px",
    "sidebar_width": "240px",
    "body_max_width": "980px",
    "code_font_size": "0.8em",
}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}

COLON = "\x00"


def setup(app):
    """Show docstrings of attributes as they are meant; Napoleon misreads two forms."""
    app.connect("autodoc-process-docstring", _prepare, priority=400)
    app.connect("autodoc-process-docstring", _restore_colons, priority=600)
    app.connect("source-read", _offer_notebook)
    app.connect("build-finished", _write_notebooks)


def _offer_notebook(app, name, source):
    """End a page that is a notebook with a link to it."""
    folder, _, page = name.rpartition("/")
    if folder == "notebooks":
        source[0] += f'\n<a href="{page}.ipynb" download>This page as a Jupyter notebook</a>\n'


def _write_notebooks(app, error):
    """Write the notebook of each page beside it."""
    for name, page in notebooks.pages().items():
        folder = Path(app.outdir) / "notebooks"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.ipynb").write_text(notebooks.notebook_of(page), encoding="utf-8")


def _prepare(app, what, name, obj, options, lines):
    """Hide colons, which would mark the words before them as a type, and separate joint names."""
    if what in ("attribute", "property", "data"):
        lines[:] = [line.replace(": ", f"{COLON} ") for line in lines]
    elif what == "class":
        text = re.sub(r"(?m)^(\w+(?:, \w+)+)( : .*(?:\n +.*)*)", _one_each, "\n".join(lines))
        lines[:] = text.split("\n")


def _one_each(joint):
    """Repeat the description of attributes such as ``x, b : array`` for each name."""
    return "\n".join(name + joint[2] for name in joint[1].split(", "))


def _restore_colons(app, what, name, obj, options, lines):
    lines[:] = [line.replace(COLON, ":") for line in lines]
