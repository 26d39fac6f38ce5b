"""What the lm-evaluation-harness logs: one file per model and task, several metrics and filters in it."""

import json

import pytest
from hypothesis import given
from readers import IDS, damaged, decoded, plain, read_or_refused, refusal

from irtjax import read_responses

NAME = "samples_gsm8k_2025-01-21T03-44-18.458309.jsonl"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lm") / "org__model"
    folder.mkdir()
    return folder / NAME


def line(doc_id, filter="none", **metrics):
    """A line as the harness writes it; metrics whose names are no words of Python stand in `more`."""
    metrics |= metrics.pop("more", {})
    doc = {"question": f"{doc_id}?", "acc": 7, "filter": "of the data set"}
    logged = {"doc_id": doc_id, "doc": doc, "target": "4", "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": {}}}}
    logged |= {"resps": [["4"]], "filtered_resps": ["4"], "filter": filter, "metrics": list(metrics)}
    return json.dumps(logged | {"doc_hash": "a", "prompt_hash": "b", "target_hash": "c"} | metrics)


def written(path, *lines):
    path.write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    return path


def test_the_folder_is_the_subject_and_the_item_is_of_the_task(path):
    written(path, line(0, exact_match=1.0), line(2, exact_match=0.0), line(1, exact_match=1))
    assert plain(read_responses(path)) == (["org__model"], ["gsm8k/0", "gsm8k/2", "gsm8k/1"], [[1, 0, 1]])


def test_a_file_is_named_from_within_its_folder_too(path, monkeypatch):
    written(path, line(0, acc=1.0))
    monkeypatch.chdir(path.parent)
    assert plain(read_responses(NAME)) == (["org__model"], ["gsm8k/0"], [[1]])


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("samples_mmlu_law_2025-01-21T03-44-18.458309", "mmlu_law"),
        ("samples_mmlu_law_2025-01-21T03-44-18", "mmlu_law"),
        ("samples_mmlu_law", "mmlu_law"),
        ("samples_a_2025-01-21T03-44-18_2025-01-22T03-44-18.1", "a_2025-01-21T03-44-18"),
        ("samples_leaderboard_math_2025", "leaderboard_math_2025"),
        ("arc-easy.5", "arc-easy.5"),
        ("samples_", "samples_"),
    ],
)
def test_the_task_is_what_stands_before_the_time(path, name, task):
    renamed = written(path.with_name(f"{name}.jsonl"), line(3, acc=1))
    assert read_responses(renamed).item_ids.tolist() == [f"{task}/3"]


SCORES = {  # metrics of two answers, which metrics are wanted, and what is right
    "acc before acc_norm": ([{"acc": 1.0, "acc_norm": 0.0}, {"acc": 0.0, "acc_norm": 1.0}], None, [1, 0]),
    "acc before exact_match": ([{"exact_match": 0, "acc": 1}, {"exact_match": 1, "acc": 0}], None, [1, 0]),
    "exact_match before pass@1": ([{"pass@1": 0, "exact_match": 1}] * 2, None, [1, 1]),
    "pass@1 before others": ([{"f1": 1, "pass@1": 0}] * 2, None, [0, 0]),
    "pass_at_1": ([{"other": 1, "pass_at_1": 0.0}] * 2, None, [0, 0]),
    "the only one": ([{"em": 0}, {"em": 1}], None, [0, 1]),
    "the only one of 0 and 1": ([{"em": 0, "f1": 0}, {"em": 1, "f1": 0.5}], None, [0, 1]),
    "no number beside it": ([{"acc_all": ["x", 1], "em": 0}, {"acc_all": ["y", 1], "em": 1}], None, [0, 1]),
    "a wanted one": ([{"acc": 1.0, "acc_norm": 0.0}, {"acc": 0.0, "acc_norm": 1.0}], "acc_norm", [0, 1]),
    "several wanted": ([{"acc": 1, "a": 0, "b": 1}, {"acc": 0, "a": 1, "b": 1}], ["a", "acc"], [0, 1]),
    "truth values": ([{"acc": True}, {"acc": False}], None, [1, 0]),
    "truth values of NumPy": ([{"acc": "True"}, {"acc": "False"}], None, [1, 0]),
    "missing": ([{"acc": None}, {"acc": 1}], None, [-1, 1]),
}


@pytest.mark.parametrize("case", SCORES)
def test_one_metric_says_what_is_right(path, case):
    scores, metric, expected = SCORES[case]
    written(path, *(line(at, more=one) for at, one in enumerate(scores)))
    assert plain(read_responses(path, metric=metric)) == (["org__model"], ["gsm8k/0", "gsm8k/1"], [expected])


def test_metrics_need_not_be_listed(path):
    lines = [json.loads(line(0, em=1.0)), json.loads(line(1, em=0.0))]
    for one in lines:
        del one["metrics"], one["filter"]
    written(path, *map(json.dumps, lines))
    assert plain(read_responses(path)) == (["org__model"], ["gsm8k/0", "gsm8k/1"], [[1, 0]])


def test_one_filter_counts(path):
    strict = [line(at, "strict-match", exact_match=code) for at, code in enumerate([0, 0, 1])]
    flexible = [line(at, "flexible-extract", exact_match=code) for at, code in enumerate([0, 1, 1])]
    for lines in (strict + flexible, [one for pair in zip(strict, flexible, strict=True) for one in pair]):
        written(path, *lines)
        assert read_responses(path).values.tolist() == [[0, 0, 1]]
        assert read_responses(path, filter="flexible-extract").values.tolist() == [[0, 1, 1]]
        assert read_responses(path, filter=["none", "strict-match", "flexible-extract"][1:]).values.tolist() == [
            [0, 0, 1]
        ]


def test_a_name_that_no_file_has_is_refused(path):
    written(path, line(0, "strict-match", acc=1, acc_norm=0))
    for options, message in (
        ({"metric": "acc_nrm"}, "`metric`: no file has 'acc_nrm': they have 'acc', 'acc_norm'"),
        ({"metric": ["acc", "x"]}, "`metric`: no file has 'x'"),
        ({"filter": "strict"}, "`filter`: no file has 'strict': they have 'strict-match'"),
    ):
        with pytest.raises(ValueError, match=message):
            read_responses(path, **options)


def test_doc_ids_are_kept(path):
    docs = [*(one for one in IDS if not one.endswith("\0")), 7_000]
    written(path, *(line(one, acc=at % 2) for at, one in enumerate(docs)))
    found = [f"gsm8k/{one}" for one in docs]
    assert plain(read_responses(path)) == (["org__model"], found, [[at % 2 for at in range(len(docs))]])


GOOD = line(0, acc=1)
BAD = {
    "no metric": ([line(0)], "line 1: no key of a metric, such as acc or exact_match"),
    "no metric of this line": ([GOOD, line(1, em=1)], "line 2 (doc_id '1'): no key 'acc'"),
    "no doc_id": ([GOOD, '{"acc": 1}'], "line 2: no key doc_id"),
    "doc_id null": ([GOOD, line(None, acc=1)], "line 2, key doc_id: None is neither a text nor a whole number"),
    "doc_id true": ([line(True, acc=1)], "line 1, key doc_id: a bool is neither|line 1, key doc_id: True is neither"),
    "doc_id empty": ([line("", acc=1)], "line 1, key doc_id: '' is neither"),
    "doc_id a list": ([line([1], acc=1)], "line 1, key doc_id: a list is neither"),
    "filter a number": ([line(0, 3, acc=1)], "line 1, key filter: 3 is not a text"),
    "a graded score": ([GOOD, line(1, acc=0.5)], "line 2 (doc_id '1'), key 'acc': 0.5 is neither 0 nor 1: choose"),
    "bleu": ([line(0, bleu=23.4)], "line 1 (doc_id '0'), key 'bleu': 23.4 is neither 0 nor 1"),
    "a list": ([line(0, acc=[1])], "key 'acc': a list is neither 0 nor 1"),
    "a text": ([line(0, acc="yes")], "key 'acc': 'yes' is neither 0 nor 1"),
    "NaN": ([line(0, acc=float("nan"))], "key 'acc': nan is neither 0 nor 1"),
    "two of 0 and 1": (
        [line(0, a=1, b=0, c=0.5)],
        "the metrics 'a', 'b' are 0 or 1 throughout: choose one by `metric`",
    ),
    "none of 0 and 1": ([line(0, bleu=3, ter=0.5)], "no metric of 'bleu', 'ter' is 0 or 1 throughout: leave the file"),
    "many": ([line(0, more={f"m{at}": 1 for at in range(9)})], "'m0', 'm1', 'm2', 'm3', 'm4', 'm5' and 3 more"),
    "twice": ([GOOD, line(1, acc=0), line(0, acc=0)], "line 3: subject 'org__model' answers item 'gsm8k/0' a second"),
    "cut": ([GOOD, line(1, acc=0)[:-20]], 'line 2: expected {"doc_id": ..., METRIC: 0 or 1} ('),
    "no JSON": ([GOOD, "acc"], "line 2: expected {"),
    "a list of lines": ([GOOD, f"[{GOOD}]"], "(it is a list)"),
    "a key twice": ([GOOD[:-1] + ', "acc": 0}'], "the key 'acc' is there twice"),
    "a lone surrogate": ([line("\ud800", acc=1)], "lone surrogate"),
    "NUL": ([line("a\0", acc=1)], "ends in a NUL"),
    "another program": (['{"id": 1, "correct": true}'], "line 1: expected {"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_lines_are_named(path, case):
    lines, message = BAD[case]
    written(path, *lines)
    assert any(part in refusal(read_responses, path) for part in message.split("|"))


def test_a_file_that_ends_within_a_line_is_said_to(path):
    path.write_text(f"{GOOD}\n{line(1, acc=0)[:-30]}")
    assert refusal(read_responses, path).endswith("; the file ends in this line)")


def test_a_line_of_no_known_program_gets_all_three_forms(path):
    written(path, '{"id": 1, "correct": true}')
    said = refusal(read_responses, path)
    for part in ("py-irt", "lm-evaluation-harness", "every_eval_ever", '"subject_id"', '"doc_id"', '"sample_id"'):
        assert part in said
    assert said.endswith("(it has the keys 'id', 'correct')")
    path.write_text("\n")
    assert refusal(read_responses, path).endswith("(the file is empty)")


def expected(content):
    """Items and values by `json` and plain loops; None if the file is bad."""
    if (text := decoded(content)) is None:
        return None
    rows = []
    for one in text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if one.strip():
            try:
                rows.append(json.loads(one, object_pairs_hook=once))
            except (ValueError, RecursionError, AssertionError):
                return None
    if any(type(row) is not dict or type(row.get("doc_id")) not in (str, int) for row in rows):
        return None
    kept = [row for row in rows if row.get("filter", "none") == rows[0].get("filter", "none")]
    if any(type(row.get("filter", "none")) is not str for row in rows):
        return None
    items = [f"gsm8k/{row['doc_id']}" for row in kept]
    try:
        values = [{None: -1, 0: 0, 1: 1, "True": 1, "False": 0}[row["exact_match"]] for row in kept]
        "".join(items).encode()
    except (LookupError, TypeError, ValueError):
        return None
    bad_id = any(one.endswith(("\0", "gsm8k/")) for one in items) or len(set(items)) < len(items)
    return (["org__model"], items, [values]) if items and not bad_id else None


def once(pairs):
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


SMALL = [{"doc_id": at, "filter": name, "exact_match": 1.0 * at} for name in ("s", "f") for at in range(2)]
WHOLE = "\r\n".join(map(json.dumps, SMALL)).encode()


@given(damaged(WHOLE))
def test_damaged_files_are_read_as_they_are_or_refused(path, content):
    path.write_bytes(content)
    if content.count(b'"exact_match"') == content.count(b'"doc_id"') == content.count(b"{"):  # else of another format
        assert plain(read_or_refused(read_responses, path)) == expected(content)
    else:
        read_or_refused(read_responses, path)
