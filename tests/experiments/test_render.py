"""Templates of reports: what they take, and what becomes of their lines."""

from pathlib import Path

import pandas as pd
import pytest
from jinja2 import DictLoader, UndefinedError

from experiments.reports import markdown, render

TEMPLATES = sorted(Path(render.__file__).with_name("templates").iterdir())
TEXT = """{% macro half(row) %}{{ (row.n / 2) | f(".1f") }}{% endmacro %}
# T

{% block summary %}
* {{ name | inline }} has
  {{ n | f(",") }} items.
* {{ half({"n": n}) }}
{% endblock %}

Of θ
- b there
{% if n > 5 %}
is much.
{% endif %}



| a |
| --- |
| {{ name | code }} |

    --flag
"""


def rendered(monkeypatch, text, **values):
    for name in ("_ENVIRONMENT", "_FOR_TERMINALS"):
        monkeypatch.setattr(render, name, getattr(render, name).overlay(loader=DictLoader({"t.md.j2": text})))
    return render.render("t", values)


def test_a_paragraph_is_a_line_and_a_terminal_sees_names_as_they_are(monkeypatch):
    text, summary = rendered(monkeypatch, TEXT, name="*x*", n=1000)
    listed = "* \\*x\\* has 1,000 items.\n* 500.0"
    assert text == f"# T\n\n{listed}\n\nOf θ - b there is much.\n\n| a |\n| --- |\n| `*x*` |\n\n    --flag\n"
    assert summary == ["*x* has 1,000 items.", "500.0"]


def test_a_value_that_is_missing_is_an_error(monkeypatch):
    with pytest.raises(UndefinedError, match="'n' is undefined"):
        rendered(monkeypatch, "{{ n }}")
    with pytest.raises(KeyError, match="c"):
        rendered(monkeypatch, "{{ rows | table({'c': '{c}'}) }}", rows=pd.DataFrame({"a": [1]}))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_every_template_can_be_read_and_every_report_says_how_it_was_made(path):
    render._ENVIRONMENT.get_template(path.name)
    text = path.read_text(encoding="utf-8")
    assert path.name.startswith("_") or text.endswith('{% include "_made.md.j2" %}\n')
    assert max(map(len, text.splitlines())) <= 120


def test_columns_of_a_table_that_are_named_and_all_others():
    rows = pd.DataFrame({"name": ["a|b"], "p": [0.03], 5: [1.25], 10: [None]}, ["first"])
    columns = [("x", "{name!i}"), ("x", "{index}"), ("p", "{p!p}")]
    made = markdown.table_of(rows, columns, head="after {}", cell="{:.1f}").splitlines()
    assert made == [
        "| x | x | p | after 5 | after 10 |",
        "| --- | --- | --- | --- | --- |",
        "| a\\|b | first | p = 0.0300 | 1.2 |  |",
    ]
