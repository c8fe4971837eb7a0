"""Settings of the documentation's site: ``sphinx-build -W docs docs/_build``."""

from hybrid_nbody import __version__

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

html_theme = "alabaster"
html_title = f"hybrid_nbody {release}"
html_theme_options = {
    "description": f"Gravity and stable fluids, from a laptop to a cluster of GPUs. Version {release}",
    "fixed_sidebar": True,
    "page_width": "1100px",
    "sidebar_width": "240px",
}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
