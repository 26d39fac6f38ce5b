"""The text of a report: a template of `templates/`, which holds the prose, with the values that a module computes."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from experiments.reports import markdown
from irtjax.errors import printable


def _printable(value: object) -> str:
    return printable(str(value))


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,  # of what is included
    autoescape=False,  # this is Markdown: `inline` and `code` escape what comes from outside
)
_ENVIRONMENT.tests["missing"] = lambda value: value is None or value != value
_ENVIRONMENT.filters |= {
    "f": format,  # by Python's format specification
    "p_value": markdown.p_value,
    "seeds": markdown.seeds,
    "inline": markdown.inline,
    "code": markdown.code,
    "printable": _printable,
    "table": markdown.table_of,
}
_FOR_TERMINALS = _ENVIRONMENT.overlay()
_FOR_TERMINALS.filters = _ENVIRONMENT.filters | {"inline": _printable, "code": _printable}


def render(name: str, values: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The text of a report; and the lines of its block `summary`, if it has one, for a terminal.

    There a list has no marks, and what comes from outside is not escaped as Markdown.
    """
    text = _tidy(_ENVIRONMENT.get_template(f"{name}.md.j2").render(values))
    template = _FOR_TERMINALS.get_template(f"{name}.md.j2")
    if "summary" not in template.blocks:
        return text, []
    context = template.new_context(dict(values))
    "".join(template.root_render_func(context))  # defines macros
    summary = _tidy("".join(template.blocks["summary"](context)))
    return text, [line.removeprefix("* ") for line in summary.splitlines() if line]


def _tidy(text: str) -> str:
    """Markdown with each paragraph in one line, so that no number or dash begins a list, and single blank lines."""
    joined = re.sub(r"(?<=\S) *\n {0,3}(?![\s|#]|\* |!\[)", " ", text.strip())
    return re.sub(r"\n\s*\n", "\n\n", joined) + "\n"
