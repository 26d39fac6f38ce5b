"""JSON lines of py-irt: one subject a line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from readers import IDS, damaged, decoded, matrices, plain, read_or_refused, refusal

from irtjax import ResponseMatrix, read_responses


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("json") / "r.jsonlines"


def lines_of(subjects, items, values, **how):
    answers = [{item: None if code < 0 else code for item, code in zip(items, row, strict=True)} for row in values]
    records = [{"subject_id": one, "responses": given} for one, given in zip(subjects, answers, strict=True)]
    return [json.dumps(record, **how) for record in records]


def test_py_irt_json_lines(path):
    lines = [{"subject_id": "s", "responses": {"a": 1, "b": 0}}, {"subject_id": "t", "responses": {"b": 1, "c": None}}]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert plain(read_responses(path)) == (["s", "t"], ["a", "b", "c"], [[1, 0, -1], [-1, 1, -1]])


GOOD = {
    "a subject in two lines": (
        '{"subject_id": "s", "responses": {"a": 1}}\n{"subject_id": "s", "responses": {"b": 0}}',
        (["s"], ["a", "b"], [[1, 0]]),
    ),
    "a BOM": ('\ufeff{"subject_id": "s", "responses": {"a": 1}}', (["s"], ["a"], [[1]])),
    "other line ends": (
        '\r\n{"subject_id": "s", "responses": {"a": 1}}\r\n \r{"subject_id": "t", "responses": {"a": 0}}\r',
        (["s", "t"], ["a"], [[1], [0]]),
    ),
    "numbers as ids": (
        '{"subject_id": 7, "responses": {"7": 1}}\n{"subject_id": "007", "responses": {"7": 0}}',
        (["7", "007"], ["7"], [[1], [0]]),
    ),
    "numbers of other kinds": (
        '{"subject_id": "s", "responses": {"a": 1.0, "b": true, "c": false, "d": 0.0, "e": -0.0, "f": 1e0}}',
        (["s"], list("abcdef"), [[1, 1, 0, 0, 0, 1]]),
    ),
    "other keys": ('{"subject_id": "s", "responses": {"a": 1}, "note": [1]}', (["s"], ["a"], [[1]])),
    "escapes": ('{"subject_id": "\\u00e9\\ud83d\\ude42", "responses": {"\\n": 1}}', (["é🙂"], ["\n"], [[1]])),
    "a line separator": ('{"subject_id": "\u2028", "responses": {"\x85": 1}}', (["\u2028"], ["\x85"], [[1]])),
}


@pytest.mark.parametrize("case", GOOD)
def test_lines_that_are_read(path, case):
    text, expected = GOOD[case]
    path.write_text(text, newline="", encoding="utf-8")
    assert plain(read_responses(path)) == expected


@pytest.mark.parametrize("ascii_only", [True, False])
def test_ids_are_kept(path, ascii_only):
    values = [[(j + i) % 3 - 1 for i in range(len(IDS))] for j in range(len(IDS))]
    path.write_text("\n".join(lines_of(IDS, IDS, values, ensure_ascii=ascii_only)), encoding="utf-8")
    assert plain(read_responses(path)) == (IDS, IDS, values)


def record(subject='"s"', responses='{"a": 1}'):
    return f'{{"subject_id": {subject}, "responses": {responses}}}'


BAD = {
    "nothing": ("", "no items|no subjects"),
    "blank lines": ("\n \n", "no items|no subjects"),
    "no JSON": ("{", "line 1: expected"),
    "JSON cut": (record()[:-1], "line 1: expected"),
    "a comma too many": (record(responses='{"a": 1,}'), "line 1: expected"),
    "two in a line": (record() + record(), "line 1: expected"),
    "single quotes": (record().replace('"', "'"), "line 1: expected"),
    "over many lines": (json.dumps(json.loads(record()), indent=1), "line 1: expected"),
    "in a list": (f"[{record()}]", "(it is a list)"),
    "a number": ("1", "(it is 1)"),
    "a text": ('"subject_id responses"', "(it is 'subject_id responses')"),
    "null": ("null", "(it is None)"),
    "no responses": ('{"subject_id": "s"}', "(it has no responses)"),
    "no subject": ('{"responses": {"a": 1}}', "(it has no subject_id)"),
    "empty responses": (record(responses="{}"), "subject 's' has no responses"),
    "responses in a list": (record(responses="[1]"), "the responses of subject 's' are a list"),
    "responses in pairs": (record(responses='[["a", 1], ["a", 0]]'), "the responses of subject 's' are a list"),
    "responses null": (record(responses="null"), "the responses of subject 's' are None"),
    "an item twice": (record(responses='{"a": 1, "a": 0}'), "the key 'a' is there twice"),
    "a key twice": (
        '{"subject_id": "s", "subject_id": "t", "responses": {"a": 1}}',
        "the key 'subject_id' is there twice",
    ),
    "a key twice within": (record(responses='{"a": {"b": 1, "b": 1}}'), "the key 'b' is there twice"),
    "many keys": (record(responses="{" + ", ".join(f'"{at}": 1' for at in [*range(50_000), 49_999]) + "}"), "'49999'"),
    "answered twice": (f"{record()}\n{record()}", "line 2: subject 's' answers item 'a' a second time"),
    "text and number": (
        f"{record('1')}\n{record(chr(34) + '1' + chr(34))}",
        "a text in one line and a number in another",
    ),
    "nested lists": (record(responses="[" * 100_000), "line 1: expected"),
    "nested objects": ('{"a": ' * 100_000, "line 1: expected"),
    "an endless number": (record(responses=f'{{"a": {"9" * 5000}}}'), "line 1: expected"),
    "a long text": (record(responses=f'{{"a": "{"9" * 5000}"}}'), "item 'a': '9999"),
    "a lone surrogate as a subject": (record('"\\ud800"'), "lone surrogate"),
    "a lone surrogate as an item": (record(responses='{"\\udfff": 1}'), "lone surrogate"),
    "NUL ends a subject": (record('"s\\u0000"'), "ends in a NUL"),
    "NUL ends an item": (record(responses='{"a\\u0000": 1}'), "ends in a NUL"),
    "an empty subject": (record('""'), "line 1 has no subject id"),
    "an empty item": (record(responses='{"": 1}'), "line 1 has no item id"),
    "a raw control character": (record('"\x01"'), "line 1: expected"),
}
BAD |= {
    f"subject {text}": (record(text), "neither a text nor a whole number")
    for text in ["null", "true", "1.5", "NaN", "[1]", '{"x": 1}']
}
BAD |= {
    f"response {text}": ("\n" + record(responses=f'{{"a": {text}}}'), f"line 2 (subject 's'), item 'a': {shown}")
    for text, shown in [
        ("2", "2 is not"), ("-1", "-1 is not"), ("0.5", "0.5 is not"), ("1e400", "inf is not"), ("NaN", "nan is not"),
        ("-Infinity", "-inf is not"), ('"1"', "'1' is not"), ('""', "'' is not"), ('"NA"', "'NA' is not"),
        ("[1]", "a list is not"), ("{}", "a dict is not"), ("1" * 99, "1111"),
    ]
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_lines_are_named(path, case):
    text, message = BAD[case]
    path.write_text(text, newline="", encoding="utf-8")
    assert any(part in refusal(read_responses, path) for part in message.split("|"))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings_are_refused(path, encoding):
    path.write_text(record('"é"'), encoding=encoding)
    assert "line 1 is not UTF-8" in refusal(read_responses, path)


@given(matrices(), st.booleans())
def test_what_is_written_is_read(path, parts, ascii_only):
    written = ResponseMatrix(*parts)
    path.write_text("\n".join(lines_of(*plain(written), ensure_ascii=ascii_only)), encoding="utf-8")
    assert plain(read_responses(path)) == plain(written)


def expected(content):
    """Subjects, items and values by `json` and plain loops; None if the file is bad."""
    if (text := decoded(content)) is None:
        return None
    found = {}
    for line in text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line.strip():
            continue
        try:
            record = json.loads(line, object_pairs_hook=once)
            subject, answers = record["subject_id"], record["responses"]
            given = {(str(subject), item): None if v is None else [0, 1].index(v) for item, v in answers.items()}
            "".join(map("".join, given)).encode()
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError, AssertionError):
            return None
        bad_id = any(not one or one.endswith("\0") for pair in given for one in pair)
        if type(subject) not in (str, int) or bad_id or not given or given.keys() & found.keys():
            return None
        found |= given
    subjects, items = (list(dict.fromkeys(pair[at] for pair in found)) for at in (0, 1))
    values = [[-1 if (code := found.get((one, item))) is None else code for item in items] for one in subjects]
    return (subjects, items, values) if found else None


def once(pairs):
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


WHOLE = "\r\n".join(lines_of(["s", 'y "z"', "ß"], ["a", "b, c", "d\n"], [[1, 0, -1], [0, 1, 1], [1, 1, 0]])).encode()


@given(damaged(WHOLE) | st.binary(max_size=20))
def test_damaged_files_are_read_as_they_are_or_refused(path, content):
    path.write_bytes(content)
    assert plain(read_or_refused(read_responses, path)) == expected(content)
