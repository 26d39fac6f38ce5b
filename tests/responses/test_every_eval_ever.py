"""Instance-level lines of every_eval_ever: several models and benchmarks in one file."""

import json

import pytest
from hypothesis import given
from readers import IDS, damaged, decoded, plain, read_or_refused, refusal

from irtjax import read_responses


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("eee") / "98ea850e.jsonl"


def line(model="m", sample="1", name="gsm8k", evaluation=None, **more):
    """A line as its converters write it; `evaluation` in place of an answer that is right."""
    record = {"schema_version": "0.2.1", "evaluation_id": f"{name}/{model}/1706000000", "model_id": model}
    record |= {"evaluation_name": name, "sample_id": sample, "interaction_type": "single_turn"}
    record |= {"input": {"raw": "?", "reference": ["5"]}, "output": {"raw": ["5"]}, "answer_attribution": []}
    record["evaluation"] = {"score": 1.0, "is_correct": True, "num_turns": None} if evaluation is None else evaluation
    return json.dumps({key: value for key, value in (record | more).items() if value != "absent"})


def graded(score, is_correct, **more):
    return {"score": score, "is_correct": is_correct} | more


def written(path, *lines):
    path.write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    return path


def test_models_and_benchmarks_in_one_file(path):
    right, wrong = graded(1.0, True), graded(0.0, False)
    written(
        path,
        line("org/a", "1", "gsm8k", right),
        line("org/a", "2", "gsm8k", wrong),
        line("org/b", "2", "gsm8k", right),
        line("org/b", "1", "arc", wrong),
    )
    expected = (["org/a", "org/b"], ["gsm8k/1", "gsm8k/2", "arc/1"], [[1, 0, -1], [-1, 1, 0]])
    assert plain(read_responses(path)) == expected


ITEMS = {
    "gsm8k/1": {},
    "gsm8k/4": {"sample": 4},
    "math/1": {"evaluation_name": "absent", "evaluation_id": "math/org/m/1706000000"},
    "1": {"evaluation_name": "absent", "evaluation_id": "absent"},
    "1 ": {"sample": "1 ", "evaluation_name": None, "evaluation_id": "98ea850e"},
}


@pytest.mark.parametrize("item", ITEMS)
def test_items_are_named_by_benchmark_and_sample(path, item):
    written(path, line(**ITEMS[item]))
    assert plain(read_responses(path)) == (["m"], [item], [[1]])


ANSWERS = {
    "is_correct": (graded(0.7, True), 1),
    "is_correct before score": (graded(1.0, False), 0),
    "is_correct null": (graded(0.0, None), 0),
    "is_correct alone": ({"is_correct": True}, 1),
    "is_correct as a number": ({"is_correct": 1}, 1),
    "score alone": ({"score": 1}, 1),
    "neither known": (graded(None, None), -1),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_what_is_right(path, case):
    evaluation, code = ANSWERS[case]
    written(path, line(evaluation=evaluation))
    assert read_responses(path).values.tolist() == [[code]]


def test_one_of_several_metrics_of_an_answer_counts(path):
    scores = {"f1": (0.5, False), "quasi_exact_match": (1.0, True), "exact_match": (0.0, False)}
    rows = [
        line(sample=sample, evaluation=graded(*score), evaluation_result_id=name)
        for sample in "12"
        for name, score in scores.items()
    ]
    written(path, *rows)
    assert plain(read_responses(path)) == (["m"], ["gsm8k/1", "gsm8k/2"], [[0, 0]])
    assert read_responses(path, metric="quasi_exact_match").values.tolist() == [[1, 1]]
    written(path, *(one for one in rows if "f1" in one or "quasi" in one))  # one of which is 0 or 1 throughout
    assert read_responses(path).values.tolist() == [[1, 1]]
    written(path, *(one.replace('"exact_match"', '"other"') for one in rows))
    assert "evaluation 'gsm8k': the metrics 'quasi_exact_match', 'other' are 0 or 1" in refusal(read_responses, path)


def test_ids_of_results_that_are_unlike_in_every_file_do_not_matter(path):
    written(path, line("a", evaluation_result_id="run 1 of a"), line("a", name="arc", evaluation_result_id="run 2"))
    assert plain(read_responses(path)) == (["a"], ["gsm8k/1", "arc/1"], [[1, 1]])


def test_one_of_several_filters_of_an_answer_counts_in_each_benchmark(path):
    def filtered(name, code):
        return line(name=f"gsm8k/{name}", evaluation=graded(code, bool(code)), metadata={"filter": name})

    written(path, filtered("strict-match", 0.0), filtered("flexible-extract", 1.0), line(name="arc", metadata=None))
    assert plain(read_responses(path)) == (["m"], ["gsm8k/strict-match/1", "arc/1"], [[0, 1]])
    found = read_responses(path, filter="flexible-extract")
    assert plain(found) == (["m"], ["gsm8k/flexible-extract/1", "arc/1"], [[1, 1]])


def test_ids_are_kept(path):
    ids = [one for one in IDS if one]
    written(path, *(line(model, sample, "x") for model in ids for sample in ids))
    assert plain(read_responses(path)) == (ids, [f"x/{one}" for one in ids], [[1] * len(ids)] * len(ids))


BAD = {
    "no model": ([line(model_id="absent")], "line 1: no key model_id"),
    "no sample": ([line(), line(sample_id="absent")], "line 2: no key sample_id"),
    "model null": ([line(model_id=None)], "line 1, key model_id: None is neither a text nor a whole number"),
    "sample a number": ([line(sample_id=1.5)], "line 1, key sample_id: 1.5 is neither"),
    "no evaluation": ([line(evaluation="absent")], "line 1: no key evaluation"),
    "evaluation null": ([line(evaluation=3)], "line 1, key evaluation: 3 is not an object"),
    "no answer": ([line(evaluation={"num_turns": 3})], "line 1, key evaluation: neither is_correct nor score"),
    "a graded score": ([line(), line(sample="2", evaluation=graded(0.75, None))], "line 2, key evaluation.score: 0.75"),
    "a text": ([line(evaluation={"is_correct": "yes"})], "line 1, key evaluation.is_correct: 'yes' is neither 0 nor 1"),
    "twice": ([line(), line()], "line 2: subject 'm' answers item 'gsm8k/1' a second time, the only such response"),
    "trials": ([line()] * 4, "line 2: subject 'm' answers item 'gsm8k/1' a second time, the first of 3 such response"),
    "cut": ([line(), line()[:-9]], 'line 2: expected {"model_id": ..., "sample_id": ..., "evaluation": {'),
    "another format": ([line(), '{"subject_id": "s", "responses": {"a": 1}}'], "line 2: no key model_id"),
    "NUL": ([line(sample="a\0")], "ends in a NUL"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_lines_are_named(path, case):
    lines, message = BAD[case]
    assert message in refusal(read_responses, written(path, *lines))


def expected(content):
    """Subjects, items and values by `json` and plain loops; None if the file is bad."""
    if (text := decoded(content)) is None:
        return None
    found = {}
    for one in text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not one.strip():
            continue
        try:
            record = json.loads(one, object_pairs_hook=once)
            model, sample, correct = record["model_id"], record["sample_id"], record["evaluation"]["is_correct"]
            code = None if correct is None else [0, 1].index(correct)
            assert {type(model), type(sample)} <= {str, int}
            assert "" not in (model, sample)
            pair = str(model), f"{record['evaluation_name']}/{sample}"
            "".join(pair).encode()
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError, AssertionError):
            return None
        if pair in found or any(one.endswith("\0") for one in pair):
            return None
        found[pair] = code
    subjects, items = (list(dict.fromkeys(pair[at] for pair in found)) for at in (0, 1))
    values = [[-1 if (code := found.get((one, item))) is None else code for item in items] for one in subjects]
    return (subjects, items, values) if found else None


def once(pairs):
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def small(model, sample, correct):
    names = {"evaluation_name": "x", "model_id": model, "sample_id": sample}
    return json.dumps(names | {"evaluation": {"is_correct": correct}})


WHOLE = "\r\n".join([small("a", "1", True), small("a", "2", False), small("ß", 1, True)]).encode()
KEYS = (b'"evaluation_name": "x"', b'"model_id"', b'"sample_id"', b'"evaluation"', b'"is_correct"')


@given(damaged(WHOLE))
def test_damaged_files_are_read_as_they_are_or_refused(path, content):
    path.write_bytes(content)
    found = plain(read_or_refused(read_responses, path))
    if len({content.count(key) for key in KEYS}) == 1:  # else keys that need not be there may be damaged
        assert found == expected(content)
