"""The text of a report: a template of `templates/`, which holds the prose, with the values that a module computes."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from experiments.reports import markdown
from irtjax.errors import printable

_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    autoescape=False,  # this is Markdown: `inline` and `code` escape what comes from outside
)
_ENVIRONMENT.filters |= {
    "f": format,  # by Python's format specification
    "p_value": markdown.p_value,
    "seeds": markdown.seeds,
    "inline": markdown.inline,
    "code": markdown.code,
    "printable": lambda value: printable(str(value)),
    "table": markdown.table_of,
}


def render(name: str, values: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The text of a report, and the lines of its block `summary`, if it has one, without the marks of a list."""
    template = _ENVIRONMENT.get_template(f"{name}.md.j2")
    text = _tidy(template.render(values))
    if "summary" not in template.blocks:
        return text, []
    summary = _tidy("".join(template.blocks["summary"](template.new_context(dict(values)))))
    return text, [line.removeprefix("* ") for line in summary.splitlines() if line]


def _tidy(text: str) -> str:
    """Markdown with each paragraph in one line, so that no number or dash begins a list, and single blank lines."""
    joined = re.sub(r"(?<=\S) *\n {0,3}(?![\s|#]|\* |!\[)", " ", text.strip())
    return re.sub(r"\n\s*\n", "\n\n", joined) + "\n"
