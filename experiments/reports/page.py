"""A report as one page for a browser: what its Markdown says, with the pictures in it, and nothing from elsewhere."""

import base64
import html
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

_FRAME = Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))


class _Renderer(RendererHTML):
    """Puts pictures into the page, and tables into boxes that scroll on a narrow screen."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        """A picture, whose path is relative to the folder of the report."""
        picture = (env["folder"] / unquote(str(tokens[idx].attrs["src"]))).read_bytes()
        source = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
        return f'<img alt="{html.escape(tokens[idx].content)}" src="{source}">'

    def table_open(self, *_: object) -> str:
        """Begins the box."""
        return '<div class="wide">\n<table>\n'

    def table_close(self, *_: object) -> str:
        """Ends it."""
        return "</table>\n</div>\n"


# reports have no links of their own: what looks like one is an id
_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")
_MARKDOWN.disable(["link", "autolink", "reference", "html_block", "html_inline"])


def page(markdown: str, folder: Path) -> str:
    """The page of a report.

    Args:
        markdown: of `report.md`, whose first line is its title.
        folder: of its pictures.
    """
    tokens = _MARKDOWN.parse(markdown)
    title = "".join(part.content for part in tokens[1].children or [])
    body = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {"folder": folder})
    return _FRAME.substitute(title=html.escape(title), body=body)
