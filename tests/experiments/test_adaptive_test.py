"""`experiments.adaptive_test`, as a user runs it: a file of answers, and a dialogue."""

import json
import subprocess

import jax
import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, assert_one_line, run, start
from simulation import by_difficulty, draw, simulate_grades

import irtjax
from experiments.reports.adaptive_test import FILES
from irtjax import ResponseMatrix
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Randomesque, Stop
from irtjax.evaluation.dialogue import answer_in, hold
from irtjax.evaluation.replay import replay
from irtjax.evaluation.scaled_replay import replay_scaled
from irtjax.item_models.tables import from_columns

MODULE = "experiments.adaptive_test"
SUBJECTS, ITEMS = 60, 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Parameters of 40 items, and answers of 60 subjects to these and one other, a tenth of them missing."""
    folder, rng = tmp_path_factory.mktemp("adaptive"), np.random.default_rng(0)
    ids = [f"i{k}" for k in range(ITEMS)]
    table = {"item_id": ids, "difficulty": rng.normal(size=ITEMS), "discrimination": rng.lognormal(0.3, 0.3, ITEMS)}
    items = pd.DataFrame(table).round(4)
    items.to_csv(folder / "items.csv", index=False)
    a, b = items.discrimination.to_numpy(), items.difficulty.to_numpy()
    values = draw(rng, by_difficulty(rng.normal(size=SUBJECTS), a, b), missing=0.1)
    values[0] = np.where(values[0] < 0, 1, values[0])  # the first has all answers
    names = [f"s{k}" for k in range(SUBJECTS)]
    other = np.concatenate([values, np.ones((SUBJECTS, 1), np.int8)], axis=1)
    irtjax.write_responses(ResponseMatrix(other, names, [*ids, "other"]), folder / "responses.csv")
    irtjax.write_responses(ResponseMatrix(values[:, :30], names, ids[:30]), folder / "some.csv")
    category = np.where(np.arange(ITEMS) < 10, "x", "y")
    pd.DataFrame({"item_id": ids, "category": category}).to_csv(folder / "categories.csv", index=False)
    pd.DataFrame({"category": ["x", "y"], "share": [0.5, 0.5]}).to_csv(folder / "quotas.csv", index=False)
    pd.DataFrame({"item_id": ids, "text": [f"what is {k}?" for k in range(ITEMS)]}).to_csv(
        folder / "texts.csv", index=False
    )
    return folder, from_columns(items.set_index("item_id")), values


@pytest.mark.slow
def test_files_are_those_of_a_direct_replay(folder, tmp_path):
    path, bank, values = folder
    arguments = f"--items={path}/items.csv", f"--responses={path}/responses.csv", f"--output_dir={tmp_path}/out"
    ended = run(*arguments, "--max_items=15", "--standard_error=0.4", "--randomesque=3", "--seed=5", module=MODULE)
    assert ended.returncode == 0, ended.stderr
    assert "note: 1 of 41 items, such as 'other', have no parameters: left out" in ended.stdout
    assert {file.name for file in (tmp_path / "out").iterdir()} == set(FILES)
    stop = Stop(15, standard_error=0.4)
    test = adaptive_test(bank, rule="variance", stop=stop, exposure=Randomesque(3))
    found = replay(test, values, jax.random.key(5))
    subjects, answers, exposure, comparison = (
        pd.read_csv(tmp_path / "out" / f"{name}.csv") for name in ("subjects", "answers", "exposure", "comparison")
    )
    assert list(subjects) == ["subject_id", "ability", "ability_se", "score", "score_error", "num_items", "reason"]
    assert subjects.reason.tolist() == found.reasons()
    assert {"standard_error", "max_items"} <= set(subjects.reason)
    np.testing.assert_array_equal(subjects.num_items, found.number)
    np.testing.assert_allclose(subjects.ability, found.last()[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(subjects.ability_se, found.last()[1], rtol=1e-4)
    assert list(answers) == ["subject_id", "step", "item_id", "answer", "ability", "ability_se", "score"]
    items = np.array([f"i{k}" for k in range(ITEMS)])
    assert answers.item_id.tolist() == items[found.items[found.items >= 0]].tolist()
    assert answers.answer.tolist() == found.answers[found.items >= 0].tolist()
    np.testing.assert_allclose(answers.score, found.score[found.items >= 0], rtol=1e-4)
    assert list(exposure) == ["item_id", "times_asked", "share"]
    assert exposure.times_asked.sum() == len(answers)
    assert comparison.groupby("method").size().to_dict() == {"adaptive": 15, "random": 15, "form": 15}
    report = (tmp_path / "out" / "report.md").read_text()
    assert "# An adaptive test: 60 subjects, 40 items" in report
    for line in ended.stdout.splitlines()[1:3]:
        assert f"* {line}" in report


@pytest.mark.slow
def test_quotas_and_items_without_answers(folder, tmp_path):
    path, *_ = folder
    arguments = f"--items={path}/items.csv", f"--responses={path}/some.csv", f"--output_dir={tmp_path}/out"
    chosen = f"--categories={path}/categories.csv", f"--quotas={path}/quotas.csv", "--max_items=10", "--at_a_time=5"
    ended = run(*arguments, *chosen, "--start_low=-0.5", "--start_high=0.5", module=MODULE)
    assert ended.returncode == 0, ended.stderr
    assert "note: 10 of 40 items of the bank, such as 'i30', are not in" in ended.stdout
    answers = pd.read_csv(tmp_path / "out" / "answers.csv")
    number = answers.item_id.str[1:].astype(int)
    assert number.max() < 30
    assert ((number < 10).groupby(answers.subject_id).mean() == 0.5).mean() > 0.9  # a few lack answers of a category
    items = pd.read_csv(path / "items.csv").set_index("item_id")
    assert items.difficulty[answers.item_id[answers.step == 1]].between(-0.5, 0.5).all()
    first = answers[answers.subject_id == "s0"]
    assert first.ability.nunique() == 2  # known after five and ten


@pytest.mark.slow
def test_a_dialogue_is_the_replay_of_its_answers(folder, tmp_path):
    path, bank, values = folder
    flags = "--interactive", "--max_items=6", "--randomesque=2", "--seed=3", f"--texts={path}/texts.csv"
    process = start(
        f"--items={path}/items.csv",
        *flags,
        f"--output_dir={tmp_path}/out",
        module=MODULE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    test = adaptive_test(bank, rule="variance", stop=Stop(6), exposure=Randomesque(2))
    found = replay(test, values[:1], jax.random.key(3))
    with process:
        for step in range(6):
            question = json.loads(process.stdout.readline())
            at = found.items[0, step]
            assert question["item_id"] == f"i{at}"
            assert question["text"] == f"what is {at}?"
            assert question["number"] == step + 1
            if step:
                np.testing.assert_allclose(question["ability"], found.ability[0, step - 1], rtol=1e-4, atol=1e-5)
            if step == 2:  # an answer to another item, then that to this one
                print('{"item_id": "i99", "answer": 1}', file=process.stdin, flush=True)
                assert json.loads(process.stdout.readline()) == question
            answer = int(values[0, at])
            line = answer if step % 2 else json.dumps({"item_id": f"i{at}", "answer": answer})
            print(line, file=process.stdin, flush=True)
        end = json.loads(process.stdout.readline())
        rest, complaints = process.communicate()
    assert process.returncode == 0, complaints
    assert rest == ""
    assert [json.loads(line) for line in complaints.splitlines()] == [
        {"error": f'line 3: item_id is "i99", but item "i{found.items[0, 2]}" was asked'}
    ]
    assert list(end) == ["finished", "ability", "ability_se", "score", "score_error", "number"]
    assert (end["finished"], end["number"]) == ("max_items", 6)
    np.testing.assert_allclose(end["score_error"], found.score_error[0, 5], rtol=1e-4)
    answers = pd.read_csv(tmp_path / "out" / "answers.csv")
    assert answers.answer.tolist() == found.answers[0].tolist()
    np.testing.assert_allclose(answers.ability, found.ability[0], rtol=1e-4, atol=1e-5)
    assert pd.read_csv(tmp_path / "out" / "subjects.csv").reason.tolist() == ["max_items"]


def test_end_of_input_ends_a_dialogue(folder, tmp_path):
    """In a fork, whose standard input is empty."""
    ended = run(
        f"--items={folder[0]}/items.csv", "--interactive", f"--output_dir={tmp_path}/out", module=MODULE
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    question, end = map(json.loads, ended.stdout.splitlines())
    assert question["number"] == 1
    assert (end["finished"], end["number"], end["ability_se"]) == ("end_of_input", 0, 1.0)
    assert pd.read_csv(tmp_path / "out" / "answers.csv").empty
    assert pd.read_csv(tmp_path / "out" / "subjects.csv").reason.tolist() == ["end_of_input"]


def test_skipped_items_tell_nothing_and_do_not_come_again(folder):
    test = adaptive_test(folder[1], rule="variance", stop=Stop(6))
    asked, complaints = [], []
    lines = ["skip\n", "null\n", '{"answer": null}\n', "1\n"]
    ids = np.array([f"i{k}" for k in range(ITEMS)])
    found, end = hold(test, ids, jax.random.key(0), lines, asked.append, complaints.append)
    questions = [json.loads(line) for line in asked]
    assert len({question["item_id"] for question in questions}) == 5
    assert [question["ability"] for question in questions[:4]] == pytest.approx([0.0] * 4, abs=1e-6)
    assert questions[4]["ability"] > 0
    assert found.answers[0].tolist() == [-1, -1, -1, 1, -1, -1]
    assert (end["finished"], end["number"]) == ("end_of_input", 4)
    assert not complaints


def test_lines_that_are_no_answers():
    good = {"1": 1, " 0\n": 0, "true": 1, "false": 0, '"skip"': -1, "skip": -1, "null": -1, '{"answer": 0, "x": 2}': 0}
    assert {line: answer_in(line, "i") for line in good} == good
    for line in ("", "2", "0.5", "[1]", "{}", '{"answer": "1"}', "yes", "NaN", "[" * 100_000, '{"item_id": 1}', "{"):
        with pytest.raises(ValueError, match=r"expected|was asked"):
            answer_in(line, "i")


def test_bad_input_ends_in_one_line(folder, tmp_path):
    path, *_ = folder
    items = f"--items={path}/items.csv"
    own = [items, f"--responses={path}/responses.csv"]
    talk = [items, "--interactive"]
    (tmp_path / "one.csv").write_text("item_id,category\ni0,x\n")
    (tmp_path / "share.csv").write_text("category,share\nx,much\n")
    (tmp_path / "unknown.csv").write_text("category,share\nz,1\n")
    (tmp_path / "two.csv").write_text("item_id,discrimination_1,discrimination_2,intercept\ni0,1,1,0\n")
    by_category = f"--categories={path}/categories.csv"
    assert_bad_flags(
        MODULE,
        [
            ([items], "--responses is missing: file or folder of scored responses"),
            ([*own, "--interactive"], "--responses has no effect with --interactive: leave it out"),
            ([*own, f"--texts={path}/texts.csv"], "--texts has no effect with no --interactive"),
            ([*own, "--max_items=50"], "--max_items 50, but the bank has 40 items: ask for fewer"),
            ([*own, "--min_items=3"], "--min_items has no effect with no --standard_error, --score_error, --change"),
            (
                [*own, "--min_items=9", "--max_items=5", "--change=0.1"],
                "--min_items 9, expected a whole number, 0 to 5",
            ),
            ([*own, "--standard_error=0"], "--standard_error=0.0: expected a number above 0"),
            ([*own, "--change=nan"], "--change=nan: expected a finite number"),
            ([*own, "--rule=best"], "--rule=best: expected one of information, variance"),
            ([*own, "--rule=random", "--progressive"], "--progressive has no effect with --rule=random"),
            ([*own, "--randomesque=3", "--progressive"], "--randomesque has no effect with --progressive"),
            ([*own, "--randomesque=41"], "expected a whole number, 1 to 40"),
            ([*own, "--at_a_time=60"], "--at_a_time=60: expected at most --max_items=40"),
            ([*own, f"--quotas={path}/quotas.csv"], "--quotas has no effect with no --categories"),
            ([*own, "--categories={tmp}/one.csv"], "one.csv: no category of item 'i1' (1 of 39 such)"),
            ([*own, by_category, "--quotas={tmp}/share.csv"], "share.csv: category 'x': expected a share from 0 to 1"),
            ([*own, by_category, "--quotas={tmp}/unknown.csv"], "--quotas: group 'z' has no item"),
            ([*own, "--start_low=9"], "no item has a difficulty from 9.0 to inf: widen the band"),
            ([*own, "--start_low=1", "--start_high=0"], "--start_low=1.0 is above --start_high=0.0"),
            ([*own, "--metric=acc"], "--metric has no effect with files that no language-model harness wrote"),
            ([*talk, "--seed=1"], "--seed has no effect with --interactive and nothing random"),
            ([*talk, "--at_a_time=2"], "--at_a_time has no effect with --interactive"),
            (["--items={tmp}/two.csv", "--interactive"], "two.csv: items in 2 dimensions, expected one"),
        ],
        tmp_path,
    )
    assert_one_line(run(*own, module=MODULE), "--output_dir is missing: folder for the results")


@pytest.mark.slow
def test_grades_are_asked_and_reported_in_grades(tmp_path):
    grades, _, items = simulate_grades(50, 12, seed=2)
    items.iloc[:10].to_csv(tmp_path / "items.csv", index=False)
    grades.to_csv(tmp_path / "grades.csv", index_label="subject_id")
    bank, out = f"--items={tmp_path}/items.csv", tmp_path / "out"
    own = bank, f"--responses={tmp_path}/grades.csv"
    ended = run(*own, "--max_items=6", "--standard_error=0.4", f"--output_dir={out}", module=MODULE)
    assert ended.returncode == 0, ended.stderr
    assert "note: 2 of 12 items, such as 'i10', have no parameters: left out" in ended.stdout
    assert {file.name for file in out.iterdir()} == set(FILES)
    test = adaptive_test(items.iloc[:10], stop=Stop(6, standard_error=0.4))
    found = replay_scaled(test, grades.iloc[:, :10])
    answers = pd.read_csv(out / "answers.csv")
    assert answers.item_id.tolist() == found.item_id.tolist()
    assert answers.answer.tolist() == [grades.loc[j, i] for j, i in zip(found.subject_id, found.item_id, strict=True)]
    np.testing.assert_allclose(answers.score, found.score, rtol=1e-4)
    assert "A score is a mean grade over the bank of 10 items." in (out / "report.md").read_text()
    cases = [
        ([*own, "--randomesque=2"], "--randomesque has no effect with items with grades, counts or shares"),
        ([*own, "--rule=kl"], "--rule=kl: items with grades, counts or shares are asked by one of information, random"),
        ([*own, "--ability=ml"], "--ability=ml: tests of items with grades, counts or shares have eap alone"),
        ([*own, "--max_items=11"], "--max_items 11, expected a whole number, 1 to 10"),
    ]
    assert_bad_flags(MODULE, cases, tmp_path)
    scores = run(
        *own, f"--output_dir={tmp_path}/scores", module="experiments.score"
    )  # a file with items that are unknown
    assert scores.returncode == 0, scores.stderr
