"""Configure Sphinx for `make docs`.

The source folder is the whole repository, so that relative links lead to the same files as on a Git host.
"""

from __future__ import annotations

import inspect
import logging
import re
from importlib import import_module
from pathlib import Path
from posixpath import join, normpath
from typing import TYPE_CHECKING, Any

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import pending_xref
from sphinx.util.logging import getLogger

from fairseq_posenc import __version__

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/*.md", "docs/encodings/*.md", ".github/*.md")
#: Pages whose sections, with the pages that they link to, become the table of contents.
INDEXES = ("docs/index", "docs/encodings/index")
#: On this site, the reference of a module stands in the place of this comment; Git hosts hide the comment.
REFERENCE = re.compile(r"<!-- reference: (\S+) -->")
logger = getLogger(__name__)
logging.getLogger("markdown_it").setLevel(logging.WARNING)  # fairseq lets all loggers write everything

project = "fairseq_posenc"
author = "the authors of fairseq_posenc"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = INDEXES[0]
include_patterns = list(PAGES)
# The folders of the pages, because Sphinx would search every folder of the repository for pages.
exclude_patterns = [path.name for path in ROOT.iterdir() if path.name not in {page.split("/")[0] for page in PAGES}]
templates_path = ["templates"]

html_theme = "furo"
html_title = f"fairseq_posenc {__version__}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_additional_pages = {"index": "redirect.html"}
html_copy_source = html_show_sourcelink = html_show_copyright = html_show_sphinx = False
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
smartquotes = False  # they would turn the two hyphens of flags into a dash

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
nitpick_ignore_regex = [("py:.*", ".*")]  # types of other packages; their documentation is on the network


def _contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Add a hidden table of contents to an index page: a part for each section, with the pages that it links to."""
    if page not in INDEXES:
        return
    seen: set[str] = set()
    for section in re.split(r"^## ", source[0], flags=re.MULTILINE):
        pages = [link for link in dict.fromkeys(re.findall(r"\]\(([^)#:]+)\.md\)", section)) if link not in seen]
        seen.update(pages)
        targets = [f"/{normpath(join(Path(page).parent.as_posix(), link))}" for link in pages]
        caption = "" if section.startswith("# ") else section.partition("\n")[0]
        listed = [target for target in targets if page != INDEXES[1] or target.startswith("/docs/encodings/")]
        if listed:
            title = [f":caption: {caption}"] * bool(caption)
            source[0] += "\n".join(["\n\n```{toctree}", ":hidden:", *title, "", *listed, "```\n"])


def _reference(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the reference of a module, from its docstrings and `__all__`, where a page asks for it."""
    directive = "```{{eval-rst}}\n.. automodule:: {}\n   :members:\n   :show-inheritance:\n```"
    for module in REFERENCE.findall(source[0]):
        if not hasattr(import_module(module), "__all__"):
            logger.warning("%s has no __all__, which says what is public", module, location=page)
    source[0] = REFERENCE.sub(lambda found: directive.format(found[1]), source[0])


def _require_docstring(app: Sphinx, kind: str, name: str, member: Any, skip: bool, options: Any) -> None:
    """Warn about public classes, functions and methods that Sphinx skips, because they have no docstring."""
    if skip and name[0] != "_" and (inspect.isroutine(member) or inspect.isclass(member)):
        logger.warning("%s is public, but has no docstring", getattr(member, "__qualname__", name))


def _keep_first_line(app: Sphinx, kind: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Put an empty line first, because napoleon takes what stands before a colon in the first line for a type."""
    if kind in ("attribute", "data", "property"):
        lines.insert(0, "")


def _without_links_to_folders(app: Sphinx, tree: nodes.document) -> None:
    """Show links to folders of the repository, which are not part of the site, as text."""
    for link in list(tree.findall(pending_xref)):
        target = ROOT / Path(app.env.docname).parent / link["reftarget"]
        if link["reftype"] == "myst" and target.is_dir():
            link.replace_self(link.children)


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(_mathml(node, as_block=False))
    raise SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{_mathml(node, as_block=True)}</div>')
    raise SkipNode


def _mathml(node: nodes.Element, *, as_block: bool) -> str:
    """Return a formula as MathML, which browsers show without a script."""
    try:
        return str(tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        logger.warning("this formula cannot be shown: %s", error, location=node)
        return ""


def setup(app: Sphinx) -> None:
    """Connect the functions above to Sphinx."""
    app.connect("source-read", _contents)
    app.connect("source-read", _reference)
    app.connect("autodoc-skip-member", _require_docstring)
    app.connect("autodoc-process-docstring", _keep_first_line, priority=100)
    app.connect("doctree-read", _without_links_to_folders)
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
