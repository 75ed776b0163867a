"""Keep every page of the book free of files from elsewhere, so that it opens from disk with no network.

Jupyter Book always loads ``sphinx_thebe``, which names an address on every page, although the book runs no
live code; it is switched off. A page that would load any other file from elsewhere stops the build.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError


def switch_off_thebe(app: Sphinx, config: Config) -> None:
    """Disconnect every handler of ``sphinx_thebe`` before the first of them runs."""
    for listeners in app.events.listeners.values():
        for listener in list(listeners):
            if listener.handler.__module__.startswith("sphinx_thebe"):
                app.disconnect(listener.id)


def keep_local_files(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Drop thebe's style sheet from a page and refuse a script or style that lies elsewhere."""
    styles = [style for style in context["css_files"] if style.filename != "_static/sphinx-thebe.css"]
    context["css_files"] = styles
    for asset in [*context["script_files"], *styles]:
        if "//" in str(asset.filename or ""):
            raise ExtensionError(f"{pagename} would load {asset.filename}: put the file under book/_vendor.")


def setup(app: Sphinx) -> dict[str, bool]:
    """Run once all extensions are set up, and again last before a page is written."""
    app.connect("config-inited", switch_off_thebe)
    app.connect("html-page-context", keep_local_files, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
