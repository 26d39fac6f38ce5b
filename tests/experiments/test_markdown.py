"""Names from outside in reports: shown as they are, whatever they are made of."""

import numpy as np
import pandas as pd
import pytest

from experiments.reports import markdown
from experiments.reports.render import render
from irtjax import InputError
from irtjax.errors import printable

ORDINARY = ["item_12", "SNLI neutral", "5GS-contradiction", "a/b", "Übung 3", "问题", "x.y", "(old)"]
AWKWARD = [
    "<script>alert(1)</script>", "a|b", "`code`", "*bold*", "_it_", "[x](http://a)", "$1$", "# title", "a\\b", "&lt;",
    "~~a~~", "- list", "1. one", "+ plus", "__init__",
]  # fmt: skip


def rendered(text):
    """What CommonMark makes of a line without emphasis, links, code or HTML: backslash escapes are taken away."""
    shown, at = "", 0
    while at < len(text):
        at += text[at] == "\\" and at + 1 < len(text) and not text[at + 1].isalnum()
        shown, at = shown + text[at], at + 1
    return shown


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_names_are_not_touched(name):
    assert markdown.inline(name) == name
    assert markdown.code(name) == f"`{name}`"


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_stand_for_themselves(name):
    inline = markdown.inline(name)
    # a digit that begins a list is escaped at its point instead
    assert rendered(inline).replace("\\", "") == name.replace("\\", "")
    for special in "`*<>[]|$~":
        assert inline.count(special) == inline.count(f"\\{special}")
    assert "|" not in markdown.code_cell(name).replace("\\|", "")
    code = markdown.code(name)
    fence = code[: len(code) - len(code.lstrip("`"))]
    assert code[len(fence) : -len(fence)].strip() == name.strip()
    assert fence not in code[len(fence) : -len(fence)]


def test_control_characters_are_seen():
    faked = "a\nDone: everything\x1b[2K\r\u202eb\u2028c"
    assert printable(faked) == r"a\nDone: everything\x1b[2K\r\u202eb\u2028c"
    for shown in (markdown.inline(faked), markdown.code(faked), str(InputError(faked))):
        assert not set(shown) & set("\n\x1b\r\u202e\u2028")
    assert r"    --a=a\nDone: everything\x1b[2K" in render("_made", {"flags": {"a": faked}, "versions": {}})[0]


def test_flags_without_a_value_are_left_out():
    flags = {"a": "", "b": None, "c": [], "d": 0, "e": False, "f": "x"}
    text, _ = render("_made", {"flags": flags, "versions": {"irtjax": "1"}})
    assert [line.strip() for line in text.splitlines() if line.startswith("    ")] == ["--d=0", "--e=False", "--f=x"]


def test_numbers_with_intervals():
    assert f"{markdown.Mean(10.7, 0.0):.1f}" == f"{markdown.Mean(10.7, np.nan):.1f}" == "10.7"
    assert f"{markdown.Mean(10.7, 0.3):+.1f}" == "+10.7 ± 0.3"
    assert f"{markdown.Mean(np.nan, np.nan):+.1f}" == ""
    assert f"{markdown.Limits(0.5, -0.25, 1.0):+.2f}" == "+0.50 (-0.25 to +1.00)"
    assert f"{markdown.ratio(0.5, np.nan, np.nan):.2f}" == f"{markdown.ratio(0.5, 0.5, 0.5):.2f}" == "0.50"


def test_a_table_has_cells_made_of_the_fields_of_its_rows():
    rows = pd.DataFrame({"item_id": ["a|b", "`"], "b": [1.234, np.nan], "n": [1000, 2]})
    columns = {
        "item": "{item_id!i}",
        "code": "{item_id!c}",
        "b": "{b:.2f}",
        "n": "{n:,}",
        "f": lambda row: str(row["n"] + 1),
    }
    assert markdown.table_of(rows, columns).splitlines() == [
        "| item | code | b | n | f |",
        "| --- | --- | --- | --- | --- |",
        "| a\\|b | `a\\|b` | 1.23 | 1,000 | 1001 |",
        "| \\` | `` ` `` |  | 2 | 3 |",
    ]
    assert markdown.table_of(rows[:0], columns).count("\n") == 1
