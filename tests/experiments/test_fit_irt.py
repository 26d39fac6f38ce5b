"""`experiments.fit_irt` as a user runs it."""

import json

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, run
from matplotlib.image import imread
from simulation import simulate

import irtjax
from experiments.common.table_columns import columns_of

MODULE = "experiments.fit_irt"


def test_fits_a_csv_file(tmp_path):
    responses, _, _ = simulate(150, 80, missing=0.2)
    irtjax.write_responses(responses, tmp_path / "responses.csv")
    place = [f"--responses={tmp_path / 'responses.csv'}", f"--output_dir={tmp_path / 'fit'}"]
    result = run(*place, "--model=1pl", "--estimator=svi", module=MODULE)
    assert result.returncode == 0, result.stderr
    items = pd.read_csv(tmp_path / "fit" / "items.csv")
    fit = irtjax.fit(responses, "1pl", "svi")
    assert list(items.item_id) == list(responses.item_ids)
    assert items.difficulty.to_numpy() == pytest.approx(fit.difficulty, abs=1e-4)
    assert json.loads((tmp_path / "fit" / "fit.json").read_text())["converged"] is True
    assert not (tmp_path / "fit" / "ranking.png").exists()


@pytest.mark.slow
def test_fits_a_long_test_with_a_prior(tmp_path):
    responses, _, _ = simulate(40, 1000, missing=0.2)
    irtjax.write_responses(responses, tmp_path / "responses.npz")
    place = [f"--responses={tmp_path / 'responses.npz'}", f"--output_dir={tmp_path / 'fit'}"]
    result = run(*place, "--extremes=keep", "--slope_prior=1,0.5", module=MODULE)
    assert result.returncode == 0, result.stderr
    summary = json.loads((tmp_path / "fit" / "fit.json").read_text())
    assert (summary["posteriors"], summary["converged"]) == ("normal", True)
    spread = pd.read_csv(tmp_path / "fit" / "items.csv").discrimination.std()
    assert spread < 0.5


@pytest.mark.slow
def test_fits_single_answers_and_takes_the_last(tmp_path):
    """As the same answers do in a matrix; the first row of all is replaced by the last."""
    responses, _, _ = simulate(300, 40, missing=0.6)
    single = irtjax.responses.sparse.of_matrix(responses)
    irtjax.write_responses(single, tmp_path / "long.csv")
    head, first, *rest = (tmp_path / "long.csv").read_text().splitlines()
    other = first[:-1] + str(1 - int(first[-1]))
    (tmp_path / "long.csv").write_text("\n".join([head, other, first, *rest]) + "\n")
    for sparse in ("true", "false"):
        where = [f"--responses={tmp_path / 'long.csv'}", f"--output_dir={tmp_path / sparse}", f"--sparse={sparse}"]
        result = run(*where, "--repeats=last", module=MODULE)
        assert result.returncode == 0, result.stderr
        assert ("answers, held one by one" in result.stdout) == (sparse == "true")
    one, other = (pd.read_csv(tmp_path / sparse / "items.csv") for sparse in ("true", "false"))
    assert one.num_responses.sum() == single.num_answers
    assert one.drop(columns="item_id").to_numpy() == pytest.approx(other.drop(columns="item_id").to_numpy(), abs=1e-5)


def test_says_when_it_has_not_converged_with_subjects_in_two_files(tmp_path):
    responses, _, _ = simulate(60, 30)
    for name, rows in (("some.npz", slice(None, 25)), ("others.csv", slice(25, None))):
        part = irtjax.ResponseMatrix(responses.values[rows], responses.subject_ids[rows], responses.item_ids)
        irtjax.write_responses(part, tmp_path / name)
    result = run(
        f"--responses={tmp_path / 'some.npz'},{tmp_path / 'others.csv'}",
        f"--output_dir={tmp_path / 'fit'}",
        "--max_iterations=3",
        module=MODULE,
    )
    assert result.returncode == 0
    assert "warning: not converged after 3 iterations" in result.stderr
    assert json.loads((tmp_path / "fit" / "fit.json").read_text())["converged"] is False
    assert list(pd.read_csv(tmp_path / "fit" / "subjects.csv").subject_id) == list(responses.subject_ids)
    assert imread(tmp_path / "fit" / "ranking.png").std() > 0.01  # of 60 subjects, all named
    assert "ranking.png" in result.stdout


def logs(folder, responses):
    """What the lm-evaluation-harness would have logged: a folder per model, and a file for each of two tasks."""
    for model, row in zip(responses.subject_ids, responses.values, strict=True):
        (folder / model).mkdir(parents=True)
        for task, codes in (("arc", row[:20]), ("gsm8k", row[20:])):
            lines = [{"doc_id": at, "acc": float(code), "acc_norm": 1.0} for at, code in enumerate(codes)]
            text = "".join(f"{json.dumps(line)}\n" for line in lines)
            (folder / model / f"samples_{task}_2025-01-21T03-44-18.458309.jsonl").write_text(text)
    return [*(f"arc/{at}" for at in range(20)), *(f"gsm8k/{at}" for at in range(responses.num_items - 20))]


@pytest.mark.slow
def test_fits_a_folder_of_a_harness_and_several_paths_into_it(tmp_path):
    responses, _, _ = simulate(60, 30)
    items = logs(tmp_path / "logs", responses)
    folders = [str(tmp_path / "logs" / subject) for subject in responses.subject_ids]
    files = [f"{folders[0]}/samples_{task}_2025-01-21T03-44-18.458309.jsonl" for task in ("gsm8k", "arc")]
    found = {}
    for name, paths in {"folder": [f"{tmp_path / 'logs'}/"], "paths": [*files, *folders[1:]]}.items():
        arguments = f"--responses={','.join(paths)}", "--model=1pl", f"--output_dir={tmp_path / name}"
        result = run(*arguments, module=MODULE)
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith("60 subjects × 30 items (the other way round: --transpose)\n")
        found[name] = [pd.read_csv(tmp_path / name / f"{one}.csv", index_col=0) for one in ("items", "subjects")]
    fit = irtjax.fit(responses, "1pl")
    for table, subjects in found.values():
        assert table.difficulty.loc[items].to_numpy() == pytest.approx(fit.difficulty, abs=1e-4)
        assert subjects.ability.loc[list(responses.subject_ids)].to_numpy() == pytest.approx(fit.ability, abs=1e-4)


def test_models_of_a_harness_are_joined_with_other_files(tmp_path):
    responses, _, _ = simulate(60, 30)
    items = logs(tmp_path / "logs", responses.choose_subjects(np.arange(40)))
    others = responses.choose_subjects(np.arange(40, 60))
    irtjax.write_responses(irtjax.ResponseMatrix(others.values, others.subject_ids, items), tmp_path / "r.csv")
    place = f"--responses={tmp_path / 'logs'},{tmp_path / 'r.csv'}", f"--output_dir={tmp_path / 'fit'}"
    result = run(*place, "--model=1pl", "--metric=acc", module=MODULE)
    assert result.returncode == 0, result.stderr
    table = pd.read_csv(tmp_path / "fit" / "items.csv", index_col=0)
    assert table.difficulty.loc[items].to_numpy() == pytest.approx(irtjax.fit(responses, "1pl").difficulty, abs=1e-4)


def test_columns_are_named_and_tables_turned(tmp_path):
    responses, _, _ = simulate(40, 12)
    cells = [(s, i, v, "x") for s, row in zip(responses.subject_ids, responses.values, strict=True)
             for i, v in zip(responses.item_ids, row, strict=True)]  # fmt: skip
    table = pd.DataFrame(cells, columns=["model", "question", "correct", "note"])
    table.to_csv(tmp_path / "long.csv", index=False)
    table.drop(columns="note").to_csv(tmp_path / "guessed.csv")
    turned = irtjax.ResponseMatrix(responses.values.T, responses.item_ids, responses.subject_ids)
    irtjax.write_responses(turned, tmp_path / "turned.csv")
    found = []
    for name, flag in (
        ("long", "--columns=subject:model,item:question,response:correct"), ("guessed", "--notranspose"),
        ("turned", "--transpose"),
    ):  # fmt: skip
        place = f"--responses={tmp_path / name}.csv", f"--output_dir={tmp_path / name}"
        result = run(*place, "--model=rasch", flag, module=MODULE)
        assert result.returncode == 0, result.stderr
        no = "no" if name == "turned" else ""
        assert result.stdout.startswith(f"40 subjects × 12 items (the other way round: --{no}transpose)\n")
        found.append(pd.read_csv(tmp_path / name / "items.csv"))
    assert list(found[0].item_id) == list(responses.item_ids)
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])


BAD_FILES = {
    "other.csv": ("id,a,b\nx,1,0\ny,2,1\n", "line 3 (subject 'y'), column 2 (item 'a'): '2' is not a response"),
    "empty.csv": ("id\nx\ny\n", "responses have no items"),
    "subject.csv": ("id,a,b\nx,1,0\ny,,\n", "subject 'y' has no responses"),
    "names.csv": (
        "model,question,correct,note\nx,a,1,n\n",
        "or --columns says which of its own they are, as in subject:model,",
    ),
    "item.csv": ("id,a,b\nx,1,\ny,0,\n", "item 'b' has no responses"),
}


def test_bad_responses_and_flags_get_one_line_and_leave_nothing(tmp_path):
    irtjax.write_responses(simulate(10, 5)[0], tmp_path / "r.csv")
    irtjax.write_responses(simulate(10, 5)[0], tmp_path / "r.npz")
    (tmp_path / "few.csv").write_text("item_id,guessing\ni0,0.2\n")
    (tmp_path / "high.csv").write_text(
        "item_id,guessing\n" + "".join(f"i{i},{25 if i == 3 else ''}\n" for i in range(5))
    )
    logs(tmp_path / "logs", simulate(4, 30)[0])
    cases = [
        ([], "responses"),
        (
            ["--responses={tmp}/r.csv", "--metric=acc"],
            "--metric has no effect with files that no",
        ),
        (["--responses={tmp}/logs", "--columns=item:x"], "--columns has no effect with files of a language-model"),
        (["--responses={tmp}/r.npz", "--columns=item:x"], "r.npz: is no table (.csv or .parquet)"),
        (["--responses={tmp}/r.csv", "--columns=item:x"], "there is no column 'x' for the item: it has"),
        (
            ["--responses={tmp}/r.csv", "--columns=x"],
            "--columns=x: expected columns of subject, item, response, trials, as in",
        ),
        (
            ["--responses={tmp}/r.csv", "--columns=item:a,item:b"],
            "expected columns of subject, item, response, trials, as in",
        ),
        (["--responses={tmp}/logs", "--metric=acc,x"], "--metric: no file has 'x': they have 'acc', 'acc_norm'"),
        (["--responses={tmp}", "--filter=strict"], "--filter: no file has 'strict': they have 'none'"),
        (["--responses={tmp}/nothing"], "nothing: cannot be read (No such file or directory)"),
        (["--responses=r.csv", "--model=9pl"], "--model=9pl"),
        (["--responses={tmp}/r.csv", "--slope_prior=1,x"], "--slope_prior=1,x: expected auto, none, or mean and sd"),
        (["--responses={tmp}/r.csv", "--slope_prior=nan,1"], "--slope_prior=nan,1: expected"),
        (["--responses={tmp}/r.csv", "--slope_prior=0,inf"], "--slope_prior=0,inf: expected"),
        (["--responses={tmp}/r.csv", "--guessing=1"], "--guessing=1: expected 0 to below 1"),
        (["--responses={tmp}/r.csv", "--model=3pl", "--guessing=0.2"], "holds what --model=3pl estimates"),
        (["--responses={tmp}/r.csv", "--guessing={tmp}/few.csv"], "no row for item 'i1' (1 of 4 such)"),
        (["--responses={tmp}/r.csv", "--guessing={tmp}/r.csv"], "no column guessing"),
        (["--responses={tmp}/r.csv", "--guessing={tmp}/high.csv"], "item 'i3': '25', expected 0 to below 1"),
    ]
    for estimator, model, flag in (
        ("svi", "2pl", "--anchors=items.csv"),
        ("svi", "2pl", "--dims=2"),
        ("svi", "2pl", "--slope_prior=1,1"),
        ("svi", "2pl", "--extremes=keep"),
        ("svi", "2pl", "--guessing=0.2"),
        ("mml", "2pl", "--batch_subjects=5"),
        ("mml", "2pl", "--priors=vague"),
        ("svi", "2pl", "--priors=none"),
        ("mml", "2pl", "--seed=1"),
        ("mml", "2pl", "--noasymptote_priors"),
        ("mml", "rasch", "--slope_prior=1,1"),
    ):
        name = flag.replace("--no", "--").split("=")[0]
        given = ["--responses={tmp}/r.csv", f"--estimator={estimator}", f"--model={model}", flag]
        cases.append((given, f"{name} has no effect with"))
    for name, (text, message) in BAD_FILES.items():
        (tmp_path / name).write_text(text)
        cases.append(([f"--responses={tmp_path / name}"], message))
        cases.append(([f"--responses={tmp_path / name}"], str(tmp_path / name)))
    assert_bad_flags(MODULE, cases, tmp_path)


def test_fits_grades(tmp_path):
    """By their model or by auto, texts in the order that is given; few subjects are ranked."""
    rng = np.random.default_rng(3)
    ability = rng.normal(size=(40, 1))
    words = np.array(["low", "mid", "high"])[np.digitize(ability + rng.normal(size=(40, 6)), [-0.6, 0.6])]
    table = pd.DataFrame(words, columns=[f"q{i}" for i in range(6)]).rename_axis("subject_id")
    table.to_csv(tmp_path / "words.csv")
    place = [f"--responses={tmp_path / 'words.csv'}", f"--output_dir={tmp_path / 'fit'}"]
    result = run(*place, "--model=auto", "--grades=low,mid,high", module=MODULE)
    assert result.returncode == 0, result.stderr
    items = pd.read_csv(tmp_path / "fit" / "items.csv")
    assert items.grades.tolist() == ["low|mid|high"] * 6
    assert {"threshold_1", "threshold_2_se", "mean_response"} <= set(items)
    assert json.loads((tmp_path / "fit" / "fit.json").read_text())["read_as"] == "grades low to high"
    assert (tmp_path / "fit" / "ranking.png").exists()
    words = f"--responses={tmp_path / 'words.csv'}"
    cases = [
        ([words, "--model=graded"], "item 'q0' has texts in no order"),
        ([words, "--model=graded", "--grades=low,high"], "words.csv: subject "),
        ([words, "--model=graded", "--guessing=0.2"], "--guessing has no effect with --model=graded"),
        ([words, "--grades=low,mid,high"], "--grades has no effect with --model=2pl"),
        ([words, "--model=graded", "--estimator=svi", "--dims=2"], "--dims has no effect with --estimator=svi"),
        ([words], "--model=graded, or --model=auto"),
    ]
    assert_bad_flags(MODULE, cases, tmp_path)


def test_covariates_are_columns_of_a_table(tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("id,age,course\n1,40,a\n2,50,b\n")
    found = columns_of(f"{table}:age,course", "covariates")
    assert found.index.astype(str).tolist() == ["1", "2"]
    assert found.to_numpy().tolist() == [[40, "a"], [50, "b"]]
    for given, message in (
        (f"{table}:age,size", "no column 'size', but age, course"),
        ("age", "TABLE.csv:COLUMN,COLUMN"),
    ):
        with pytest.raises(irtjax.InputError, match=message):
            columns_of(given, "covariates")
