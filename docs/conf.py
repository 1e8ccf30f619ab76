"""Sphinx configuration. ``make docs`` builds the documentation offline, with warnings as errors."""

import json
import os
import re
import warnings
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "agg")

import mmpca

HERE = Path(__file__).parent
PICTURES = (HERE / "images", HERE / "images" / "report")

project = "mmpca"
author = "The mmpca developers"
project_copyright = author
version = release = mmpca.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_build", "_templates", "gallery/*.ipynb", "gallery/*.py", "gallery/*.zip"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
templates_path = ["_templates"]
autodoc_typehints = "none"  # the docstrings give types and shapes
autodoc_default_options = {"members": True, "inherited-members": False}
numpydoc_show_class_members = False  # autodoc lists them
numpydoc_xref_param_type = False
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = "mmpca"
html_static_path = ["_static"]
html_css_files = ["wrap.css"]
html_sidebars = {"index": [], "install": [], "**": ["sidebar-nav-bs"]}  # pages of the section
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
    "nested_sections": False,
    "parallel": False,
}

# FutureWarnings of libraries are of no use to readers of the tutorials.
warnings.filterwarnings("ignore", category=FutureWarning)


def skip_routing(app, what, name, obj, skip, options):
    """Skip the metadata-routing methods that scikit-learn adds; their docstrings link to its own pages."""
    return skip or name.endswith("_request")


def escape_types(app, what, name, obj, options, lines):
    """Escape trailing underscores in parameter types, which reStructuredText would turn into links."""
    for number, line in enumerate(lines):
        if re.match(r"\s*\*\*.*\*\* : ", line):
            head, separator, kind = line.partition("** : ")
            lines[number] = head + separator + re.sub(r"(?<=\w)_(?!\w)", r"\_", kind)


def add_picture(app, what, name, obj, options, lines):
    """Show the picture of a figure on its page in the API reference."""
    pictures = [folder / f"{name.rpartition('.')[2]}.png" for folder in PICTURES]
    picture = next((path for path in pictures if path.exists()), None)
    if name.startswith("mmpca.plots.") and picture:
        first = next(place for place, line in enumerate(lines) if line.strip())
        end = next(place for place in range(first, len(lines)) if not lines[place].strip())  # of the first paragraph
        lines[end:end] = ["", f".. image:: /{picture.relative_to(HERE).as_posix()}", "   :width: 70%", ""]


def write_excerpts(app, error):
    """Write the text of all pages as a script, for excerpts in search results when pages are opened from disk.

    A browser does not let a page on disk read other pages, which is how Sphinx finds its excerpts.
    """
    if error is None and app.builder.format == "html":
        texts = {app.builder.get_target_uri(name): app.env.get_doctree(name).astext() for name in app.env.found_docs}
        script = f"window.pageTexts = {json.dumps(texts)};\n"
        (Path(app.outdir) / "_static" / "page_texts.js").write_text(script, encoding="utf-8")


def load_excerpts(app, pagename, templatename, context, doctree):
    """Load these texts on the search page alone."""
    if pagename == "search":
        app.add_js_file("page_texts.js")
        app.add_js_file("offline_search.js")


def setup(app):
    """Register the functions above."""
    app.connect("autodoc-process-docstring", add_picture, priority=950)  # after numpydoc
    app.connect("html-page-context", load_excerpts)
    app.connect("build-finished", write_excerpts)
    app.connect("autodoc-skip-member", skip_routing)
    app.connect("autodoc-process-docstring", escape_types, priority=900)  # after numpydoc
