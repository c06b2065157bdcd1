"""Sphinx settings: Markdown by MyST, the Furo theme, references taken from the docstrings."""

from __future__ import annotations

from commlens import __version__

project = "commlens"
author = "The commlens authors"
copyright = "The commlens authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # examples with errors in them

html_theme = "furo"
html_title = f"commlens {release}"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
