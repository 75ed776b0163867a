"""Make tables with the class ``searchable`` searchable and sortable in the browser.

A page without such a table loads nothing. Without scripts the table stays a plain, complete table.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

SEARCHABLE_TABLE = re.compile(r"<table[^>]*\bclass=\"[^\"]*\bsearchable\b")


def add_table_files(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Load the table library on a page that has a searchable table."""
    if SEARCHABLE_TABLE.search(context.get("body", "")):
        app.add_css_file("datatables/dataTables.dataTables.min.css", priority=400)
        app.add_js_file("datatables/dataTables.min.js", loading_method="defer")
        app.add_js_file("searchable.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at every page once its body is known."""
    app.connect("html-page-context", add_table_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
