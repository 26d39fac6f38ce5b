"""Logs of Inspect, HELM, EvalPlus and HumanEval, and numbers of every harness: what they become, and damaged ones."""

import json
import re

import numpy as np
import pytest

from irtjax import InputError
from irtjax.fits.reading import read
from irtjax.responses.formats import names_models, read_given, read_responses


def written(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def lines(path, records):
    return written(path, "".join(f"{json.dumps(record)}\n" for record in records))


def inspect_log(path, scores, model="org/m", task="qa", status="success", created="2026-01-01", scorer="judge"):
    """A log; `scores` has for each sample the values of its epochs."""
    samples = [
        {"id": at, "epoch": epoch, "input": "?", "scores": None if value == "error" else {scorer: {"value": value}}}
        for at, values in enumerate(scores, start=1)
        for epoch, value in enumerate(values, start=1)
    ]
    run = {"eval_id": "x", "created": created, "task": task, "model": model}
    return written(path, {"version": 2, "status": status, "eval": run, "samples": samples})


def helm(folder, means, trials=1, model="org/m", metric="exact_match"):
    """`per_instance_stats.json` and the specification of the run."""
    written(folder / "run_spec.json", {"name": folder.name, "adapter_spec": {"model": model}})
    entries = [
        {
            "instance_id": f"id{at}",
            "train_trial_index": trial,
            "stats": [
                {"name": {"name": "num_references", "split": "test"}, "count": 1, "sum": 4.0, "mean": 4.0},
                {"name": {"name": metric, "split": "test"}, "count": 1, "sum": mean, "mean": mean},
            ],
        }
        for trial in range(trials)
        for at, mean in enumerate(means)
    ]
    return written(folder / "per_instance_stats.json", entries)


def evalplus(path, statuses):
    tasks = {
        task: [{"task_id": task, "base_status": base, "plus_status": plus} for base, plus in found]
        for task, found in statuses.items()
    }
    return written(path, {"date": "2026-01-01 00:00", "hash": "0", "eval": tasks})


def values(path, **choice):
    given = read_given(path, **choice)
    return [
        (given.subject_ids[j], given.item_ids[i], float(cell))
        for j, i, cell in zip(given.subjects, given.items, given.cells, strict=True)
    ]


def test_inspect_grades_are_numbers_and_epochs_are_trials(tmp_path):
    path = inspect_log(tmp_path / "a.json", [["C"], ["I"], ["N"], ["error"], ["yes"]])
    scored = read_responses(path)
    assert scored.item_ids.tolist() == [f"qa/{at}" for at in range(1, 6)]
    assert (scored.subject_ids.tolist(), scored.values.tolist()) == (["org/m"], [[1, 0, 0, -1, 1]])
    inspect_log(tmp_path / "b.json", [["P"], ["C"], ["I"], ["P"], ["0.5"]], model="org/n")
    inspect_log(tmp_path / "d.json", [["I"], ["C"], ["I"], ["N"], ["no"]], model="org/o")
    graded, model = read(tmp_path, "auto")
    assert model == "graded"
    assert graded.scales[0].labels == (0, 0.5, 1)
    np.testing.assert_array_equal(graded.worths()[1], [0.5, 1, 0, 0.5, 0.5])
    counts, model = read(inspect_log(tmp_path / "c" / "c.json", [["C", "I", "C"], ["I", "I", "I"]]), "2pl")
    assert (model, counts.values.tolist(), counts.trials.tolist()) == ("binomial", [[2, 0]], [[3, 3]])


def test_the_last_log_of_a_model_and_task_that_ended_well_counts(tmp_path):
    inspect_log(tmp_path / "1.json", [["C"]], created="2026-01-01")
    inspect_log(tmp_path / "2.json", [["I"]], created="2026-01-02")
    inspect_log(tmp_path / "3.json", [["C"]], created="2026-01-03", status="error")
    assert values(tmp_path) == [("org/m", "qa/1", 0.0)]


def test_helm_means_by_the_name_of_the_metric(tmp_path):
    run = tmp_path / "mmlu:subject=anatomy,model=org_m"
    path = helm(run, [1.0, 0.0], metric="quasi_exact_match")
    scored = read_responses(tmp_path)
    assert scored.item_ids.tolist() == ["mmlu:subject=anatomy/id0", "mmlu:subject=anatomy/id1"]
    assert (scored.subject_ids.tolist(), scored.values.tolist()) == (["org/m"], [[1, 0]])
    assert [value for *_, value in values(path, metric="num_references")] == [4.0, 4.0]
    (run / "run_spec.json").unlink()
    assert values(path)[0][:2] == ("org_m", "mmlu:subject=anatomy/id0")
    assert len(values(helm(tmp_path / "other:model=n", [0.25, 0.5], trials=3, metric="rouge"), metric="rouge")) == 6


def test_passes_of_samples_are_counts(tmp_path):
    passed, failed, base = ("pass", "pass"), ("fail", "fail"), ("pass", "fail")
    path = evalplus(
        tmp_path / "m_eval_results.json", {"HumanEval/0": [passed, base, failed], "HumanEval/1": [base] * 3}
    )
    counts, model = read(path, "2pl")
    assert (model, counts.subject_ids.tolist(), counts.trials.tolist()) == ("binomial", ["m"], [[3, 3]])
    assert counts.values.tolist() == [[1, 0]]
    assert read(path, "auto", metric="base")[0].values.tolist() == [[2, 3]]
    older = {"HumanEval/0": {"nfiles": 2, "base": [["pass", []], ["pass", []]], "plus": [["pass", []], ["fail", []]]}}
    written(tmp_path / "n_eval_results.json", {"date": "", "hash": "0", "eval": older})
    records = [{"task_id": "HumanEval/0", "completion": "", "result": "", "passed": right} for right in (True, False)]
    lines(tmp_path / "k" / "samples.jsonl_results.jsonl", records)
    both, _ = read(tmp_path, "auto")
    assert both.subject_ids.tolist() == ["k", "m", "n"]
    assert (both.values[:, 0].tolist(), both.trials[:, 0].tolist()) == ([1, 1, 1], [2, 3, 2])


def test_numbers_of_the_usual_harnesses(tmp_path):
    path = tmp_path / "m" / "samples_qa_2025-01-21T03-44-18.458309.jsonl"
    lines(
        path, [{"doc_id": at, "bleu": bleu, "len": 7, "metrics": ["bleu"]} for at, bleu in enumerate([0.31, 0.52, 1.0])]
    )
    assert [value for *_, value in values(path)] == [0.31, 0.52, 1.0]
    with pytest.raises(InputError, match=r"'bleu': 0\.31 is neither 0 nor 1: choose another"):
        read_responses(path)
    with pytest.raises(InputError, match="and the 2pl is of right and wrong answers: pass `model=graded`, or"):
        read(path, "2pl")
    keys = {"model_id": "m", "evaluation_name": "essays"}
    scores = [{"is_correct": True, "score": 0.7}, {"is_correct": None, "score": 0.25}]
    records = [keys | {"sample_id": str(at), "evaluation": score} for at, score in enumerate(scores)]
    assert [value for *_, value in values(lines(tmp_path / "e.jsonl", records))] == [0.7, 0.25]
    grades = lines(
        tmp_path / "g.jsonl", [{"subject_id": s, "responses": {"i": g, "j": 2}} for s, g in (("a", 1), ("b", 3))]
    )
    assert [value for *_, value in values(grades)] == [1, 2, 3, 2]


REFUSED = {
    "no JSON": ("a.json", '{"version": 2, "status": "s", "eval": {"model": "m"', "not JSON"),
    "another document": ("a.json", {"results": {}}, "expected a log of Inspect AI, per_instance_stats.json of HELM"),
    "no samples": ("a.json", {"status": "", "eval": {"task": "t", "model": "m"}}, "no samples: the log was written"),
    "no model": ("a.json", {"status": "", "eval": {"task": "t"}, "samples": [1]}, "key eval.model: not there"),
    "a list of stats": ("x/per_instance_stats.json", {}, "expected a list of the statistics"),
    "no one": ("x/per_instance_stats.json", [{}], "nor model=… in the name of its folder names the model"),
    "an entry": ("x:model=m/per_instance_stats.json", [{"stats": []}], "entry 1.instance_id: not there"),
    "a status": (
        "x_eval_results.json",
        {"eval": {"t": [{"solution": ""}]}},
        "task 't': a sample has no text base_stat",
    ),
    "a text": ("s.jsonl", '{"task_id": "t", "passed": "yes"}\n', "line 1, key passed: 'yes' is n"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_damaged_logs_are_named(case, tmp_path):
    name, content, message = REFUSED[case]
    path = written(tmp_path / name, content)
    for function in (read_responses, read_given):
        with pytest.raises(InputError, match=re.escape(message)) as error:
            function(path)
        assert str(error.value).startswith(str(path))
        assert "\n" not in str(error.value)


def test_scores_that_are_no_numbers_name_the_sample(tmp_path):
    path = inspect_log(tmp_path / "a.json", [["C"], ["good"]])
    with pytest.raises(InputError, match="sample 2, score 'judge': 'good' is no number"):
        read_given(path)
    assert names_models(path)
    two = written(
        tmp_path / "b.json",
        json.dumps(json.loads(path.read_text())).replace(
            '"judge": {"value": "C"}', '"x": {"value": 2}, "y": {"value": 3}'
        ),
    )
    with pytest.raises(InputError, match=r"the metrics .* are numbers|no metric of 'x', 'y', 'judge' has numbers"):
        read_given(two)
