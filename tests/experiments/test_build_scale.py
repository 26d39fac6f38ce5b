"""`experiments.build_scale` as a user runs it."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, run
from matplotlib.image import imread
from scipy.special import expit
from simulation import draw, simulate_grades

import irtjax

MODULE = "experiments.build_scale"
NUM_SUBJECTS, NUM_ITEMS = 600, 24
PICTURES = ("scree.png", "curves.png", "scores.png", "wright.png", "precision.png")


def responses_of(seed, num_subjects=NUM_SUBJECTS, shift=0.0):
    """Two groups of twelve items, each measuring an ability of its own; the third item of each is pure guessing."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(shift, 1, (num_subjects, 2))
    slope, intercept = np.linspace(1.2, 2, 12), np.linspace(-1, 1, 12)
    p = np.concatenate([expit(theta[:, [k]] * slope + intercept) for k in range(2)], axis=1)
    p[:, [2, 14]] = 0.5
    names = [f"s{j}" for j in range(num_subjects)], [f"i{i:02d}" for i in range(NUM_ITEMS)]
    return irtjax.ResponseMatrix(draw(rng, p), *names)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build_scale")
    responses = responses_of(0)
    irtjax.write_responses(responses, folder / "responses.csv")
    irtjax.write_responses(responses_of(1, shift=0.5), folder / "fresh.csv")
    groups = np.repeat(["one", "two"], 12)
    gold = np.tile(["yes", "no"], 12)
    pd.DataFrame({"item": responses.item_ids, "group": groups, "gold_label": gold}).to_csv(
        folder / "items.csv", index=False
    )
    other = np.where(gold == "yes", "n", "y")
    answers = np.where(responses.values == 1, [label[0] for label in gold], other)
    table = pd.DataFrame(answers, columns=responses.item_ids)
    table.insert(0, "who", responses.subject_ids)
    table.to_csv(folder / "answers.csv", index=False)
    score = responses.values.sum(axis=1)
    people = pd.DataFrame({"who": responses.subject_ids, "group": np.where(score > 12, "up", "down")})
    people.assign(age=np.arange(NUM_SUBJECTS)).to_csv(folder / "people.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def finished(files, tmp_path_factory):
    directory = tmp_path_factory.mktemp("scales") / "run"
    arguments = [
        f"--responses={files}/responses.csv", f"--items={files}/items.csv", f"--answers={files}/answers.csv",
        f"--fresh={files}/fresh.csv", f"--subjects={files}/people.csv", "--expert_drop=i05,i17", "--short_form=5",
        f"--output_dir={directory}",
    ]  # fmt: skip
    result = run(*arguments, module=MODULE)
    assert result.returncode == 0, result.stderr
    return directory, result


def test_scale_csv_has_one_row_per_item_with_its_reason(finished):
    directory, result = finished
    table = pd.read_csv(directory / "scale.csv").set_index("item_id")
    assert len(table) == NUM_ITEMS
    assert list(table.group.unique()) == ["one", "two"]
    assert (table.loc[["i05", "i17"], "retained"] == 0).all()
    assert (table.loc[["i05", "i17"], "reason"] == "by reading").all()
    assert (table.loc[["i02", "i14"], "reason"] == "flat").all()
    assert (table.loc[["i02", "i14"], "round"] == 1).all()
    retained = table[table.retained == 1]
    assert len(retained) >= NUM_ITEMS - 6
    assert retained.reason.isna().all()
    assert retained.discrimination.between(0.7, 3).all()
    assert table[table.retained == 0].discrimination.isna().all()
    assert f"({len(retained)} of 24 items retained)" in result.stdout


def test_the_flags_are_recorded(finished):
    directory, _ = finished
    recorded = json.loads((directory / "build_scale.json").read_text())
    assert recorded["short_form"] == 5
    assert recorded["expert_drop"] == "i05,i17"
    assert recorded["versions"]["irtjax"] == irtjax.__version__


def test_every_group_has_its_files_and_pictures(finished):
    directory, _ = finished
    report = (directory / "report.md").read_text()
    for name in ("one", "two"):
        folder = directory / name
        for picture in PICTURES:
            assert imread(folder / picture).std() > 0.01
            assert f"({name}/{picture})" in report
        summary = json.loads((folder / "scale.json").read_text())
        items = pd.read_csv(folder / "items.csv")
        assert summary["num_retained"] == len(items)
        assert summary["factors_by_bic"] == 1
        assert summary["overall_fit"]["rmsea"] < 0.05
        information = pd.read_csv(folder / "information.csv")
        np.testing.assert_allclose(information[items.item_id].sum(axis=1), information.test, rtol=1e-4)
        assert len(pd.read_csv(folder / "short_form.csv")) == 5
        assert len(pd.read_csv(folder / "score_table.csv")) == len(items) + 1
        assert len(pd.read_csv(folder / "subjects.csv")) == NUM_SUBJECTS
        assert len(pd.read_csv(folder / "confirmation.csv")) == len(items)
        assert pd.read_csv(folder / "groups_ability.csv").p_value[0] < 1e-6
        assert pd.read_csv(folder / "regression_raw_score.csv").term.tolist() == ["intercept", "age", "group_up"]
    assert "**Confirmation** on 600 fresh subjects" in report
    agreement = pd.read_csv(directory / "agreement.csv").iloc[0]
    correct = irtjax.responses.matrix.proportion_correct(responses_of(0).values, axis=0).mean()
    assert agreement.answer_is_gold == pytest.approx(correct, abs=1e-4)


@pytest.mark.slow
def test_a_block_design_with_guessing_held(files, tmp_path):
    values = irtjax.read_responses(files / "responses.csv")
    block = np.arange(12) % 3
    table = pd.DataFrame(values.values[:, :12], values.subject_ids, values.item_ids[:12]).astype(float)
    table = table.mask(np.arange(NUM_SUBJECTS)[:, None] % 3 == block)
    table.to_csv(tmp_path / "blocks.csv")
    pd.DataFrame({"item": table.columns, "group": "all", "chance": 0.05}).to_csv(tmp_path / "items.csv", index=False)
    flags = [
        f"--responses={tmp_path}/blocks.csv", "--missing=by_design", f"--items={tmp_path}/items.csv",
        "--guessing=chance", f"--subjects={files}/people.csv", "--baseline=up", "--triplets", "--nofactors",
        "--least_information=1", f"--output_dir={tmp_path}/out",
    ]  # fmt: skip
    result = run(*flags, module=MODULE)
    assert result.returncode == 0, result.stderr
    items = pd.read_csv(tmp_path / "out" / "items.csv")
    assert len(items) >= 9
    assert (items.guessing == 0.05).all()
    forms = pd.read_csv(tmp_path / "out" / "forms.csv")
    assert forms.num_subjects.tolist() == [200] * 3
    assert forms.num_items.tolist() == [8] * 3
    report = (tmp_path / "out" / "report.md").read_text()
    for text in (
        "Forms of 30 subjects or more: 3.",
        "**Guessing.** Fixed at 0.05.",
        "The information is above 1, a standard error below",
    ):
        assert text in report
    assert pd.read_csv(tmp_path / "out" / "groups_percent_correct.csv").groups.tolist() == ["down - up"]
    levels = pd.read_csv(tmp_path / "out" / "levels.csv")
    assert levels.groupby("covariate").n.sum().to_dict() == {"age": 600, "group": 600}
    assert imread(tmp_path / "out" / "levels.png").std() > 0.01
    assert not (tmp_path / "out" / "scores.png").exists()


def test_items_of_two_dimensions_make_no_scale(files, tmp_path):
    flags = f"--responses={files}/responses.csv", "--nofactors", f"--output_dir={tmp_path}/out"
    result = run(*flags, module=MODULE)
    assert result.returncode == 0, result.stderr
    table = pd.read_csv(tmp_path / "out" / "scale.csv")
    assert (table.retained == 0).all()
    report = (tmp_path / "out" / "report.md").read_text()
    assert "several dimensions" in report
    assert "**Guessing.** Not tested" in report
    assert not (tmp_path / "out" / "items.csv").exists()
    assert table.reason.tolist() == ["no scale"] * NUM_ITEMS
    assert table.proportion_correct.between(0.1, 0.9).all()
    scree = pd.read_csv(tmp_path / "out" / "eigenvalues.csv")
    assert (scree.eigenvalue > scree.noise).sum() == 2


def test_a_scale_of_before_is_gone_where_there_is_none_now(files, finished, tmp_path):
    directory = tmp_path / "run"
    shutil.copytree(finished[0], directory)
    (directory / "own.csv").write_text("kept")
    noise = np.random.default_rng(0).integers(0, 2, (200, 8)).astype(np.int8)
    irtjax.write_responses(
        irtjax.ResponseMatrix(noise, np.arange(200).astype(str), [f"a${at}_$" for at in range(8)]),
        tmp_path / "noise.csv",
    )
    result = run(f"--responses={tmp_path}/noise.csv", "--nofactors", f"--output_dir={directory}", module=MODULE)
    assert result.returncode == 0, result.stderr
    assert "no dimension: no eigenvalue is above" in (directory / "report.md").read_text()
    assert not list(directory.rglob("items.csv"))
    assert list(pd.read_csv(directory / "scale.csv"))[-1] == "discrimination_se"
    assert (directory / "own.csv").read_text() == "kept"


def test_bad_input_gets_one_line_and_leaves_nothing(files, tmp_path):
    responses = f"--responses={files}/responses.csv"
    values = pd.read_csv(files / "responses.csv")
    values.iloc[3, 5] = np.nan
    values.to_csv(tmp_path / "missing.csv", index=False)
    apart = pd.read_csv(files / "responses.csv", index_col=0).astype(float)
    apart.mask((np.arange(NUM_SUBJECTS)[:, None] < 300) == (np.arange(NUM_ITEMS) < 12)).to_csv(tmp_path / "apart.csv")
    apart.mask(np.random.default_rng(0).random(apart.shape) < 0.3).to_csv(tmp_path / "gaps.csv")
    pd.read_csv(files / "items.csv").head(20).to_csv(tmp_path / "few.csv", index=False)
    twice = pd.read_csv(files / "items.csv")
    pd.concat([twice, twice.head(1)]).to_csv(tmp_path / "twice.csv", index=False)
    items = f"--items={files}/items.csv"
    named = pd.read_csv(files / "responses.csv").rename(columns={"i03": "theta"})
    named.to_csv(tmp_path / "theta.csv", index=False)
    table = pd.read_csv(files / "items.csv")
    for name, first, second in (("both", "a/b", "a_b"), ("dots", "..", "x"), ("file", "report.md", "x")):
        table.assign(group=np.repeat([first, second], 12)).to_csv(tmp_path / f"{name}.csv", index=False)
    table.assign(gold_label=["yes", *[np.nan] * 23]).to_csv(tmp_path / "no_gold.csv", index=False)
    table.assign(gold_label=np.tile(["yes", "yellow"], 12)).to_csv(tmp_path / "unclear.csv", index=False)
    people = pd.read_csv(files / "people.csv")
    people.assign(who=people.who + "x").to_csv(tmp_path / "strangers.csv", index=False)
    people.assign(age=7).to_csv(tmp_path / "one_age.csv", index=False)
    values.rename(columns=lambda name: name.replace("i", "k")).to_csv(tmp_path / "other_items.csv", index=False)
    values.head(2).assign(i00=[1, 0], i01=[0, 1]).to_csv(tmp_path / "two.csv", index=False)
    answers = f"--answers={files}/answers.csv"
    small = pd.read_csv(files / "items.csv").assign(group=["a"] * 21 + ["b"] * 3)
    small.to_csv(tmp_path / "small.csv", index=False)
    cases = [
        ([], "--responses is missing: file or folder of scored responses"),
        ([f"--responses={tmp_path}/missing.csv"], "subject 's3' did not answer item 'i04'"),
        (
            [f"--responses={tmp_path}/missing.csv", "--missing=no"],
            "--missing=no: expected one of refuse, wrong, drop, by_design",
        ),
        ([responses, "--missing=by_design"], "--missing=by_design: no answer is missing; leave it out"),
        (
            [f"--responses={tmp_path}/apart.csv", "--missing=by_design"],
            "0 subjects answered both item 'i00' and item 'i12' (1 of 144 such pairs), 30 are needed",
        ),
        ([f"--responses={tmp_path}/gaps.csv", "--missing=by_design"], "missing answers follow no design: at most"),
        ([responses, "--baseline=up"], "--baseline has no effect with no --subjects"),
        ([responses, f"--subjects={files}/people.csv", "--baseline=left"], "no subject of the baseline 'left'"),
        ([responses, "--guessing=0.2", "--choices=4"], "--choices has no effect with --guessing"),
        ([responses, items, "--guessing=gold_label"], "column gold_label of --items, item 'i00': 'yes', expected 0 to"),
        ([responses, "--least_information=0"], "--least_information=0: expected a number above 0"),
        ([responses, f"--items={tmp_path}/small.csv"], "items of group 'b': 3 items to be tested"),
        ([responses, "--items={tmp}/no.csv"], "{tmp}/no.csv: cannot be read"),
        ([responses, f"--items={tmp_path}/few.csv"], "few.csv: no row for item 'i20' of"),
        ([responses, f"--items={tmp_path}/twice.csv"], "twice.csv: item 'i00' is there twice"),
        ([responses, items, "--group_column=kind"], "no column kind: name one of group, gold_label"),
        ([responses, "--expert_drop=i99"], "--expert_drop: item 'i99' is not in"),
        ([responses, "--ability_range=2,-2"], "--ability_range=2,-2: expected two numbers, the lower first"),
        ([responses, f"--answers={files}/answers.csv"], "--answers needs --items with a column of gold labels"),
        ([responses, "--short_form=0"], "error: --short_form=0"),
        ([responses, "--level=nan"], "--level=nan: expected a finite number"),
        ([responses, "--ability_range=-inf,2"], "--ability_range=-inf,2: expected two numbers"),
        ([f"--responses={tmp_path}/theta.csv"], "item 'theta' is named like a column of information.csv"),
        ([responses, items, f"--output_dir={files}"], f"--items={files}/items.csv would be overwritten"),
        (
            [responses, f"--items={tmp_path}/both.csv"],
            "group 'a_b' would have the folder 'a_b', which is that of group 'a/b'",
        ),
        ([responses, f"--items={tmp_path}/dots.csv"], "group '..' would have the folder '', which is no name"),
        (
            [responses, f"--items={tmp_path}/file.csv"],
            "group 'report.md' would have the folder 'report.md', which is no",
        ),
        ([responses, f"--items={tmp_path}/no_gold.csv", answers], "no_gold.csv: item 'i01' has no gold_label"),
        (
            [responses, f"--items={tmp_path}/unclear.csv", answers],
            "no one answer stands for the gold label 'yes' alone",
        ),
        ([responses, f"--subjects={tmp_path}/strangers.csv"], "strangers.csv: no row for any of the 600 subjects"),
        ([responses, f"--subjects={tmp_path}/one_age.csv"], "one_age.csv: covariate 'age' is constant"),
        ([responses, f"--fresh={tmp_path}/other_items.csv"], "other_items.csv: has no item of"),
        ([responses, f"--fresh={tmp_path}/two.csv"], "two.csv: 2 subjects, the confirmation of a scale needs 30"),
        ([responses, "--group_column=kind"], "--group_column has no effect with no --items: leave it out"),
    ]
    assert_bad_flags(MODULE, cases, tmp_path)


@pytest.mark.slow
def test_a_scale_of_grades(tmp_path):
    grades, theta, _ = simulate_grades(400, 7, seed=3)
    rng = np.random.default_rng(0)
    grades["against"] = 5 - np.clip(np.round(2.5 + theta + rng.normal(size=400)), 1, 4).astype(int)
    grades.mask(np.arange(grades.size).reshape(grades.shape) == 0).to_csv(
        tmp_path / "grades.csv", index_label="subject_id"
    )
    people = pd.DataFrame({"who": grades.index, "group": np.where(theta > 0, "up", "down")})
    people.to_csv(tmp_path / "people.csv", index=False)
    given = f"--responses={tmp_path}/grades.csv", "--nofactors"
    out = tmp_path / "out"
    more = "--missing=drop", f"--subjects={tmp_path}/people.csv", "--short_form=3"
    result = run(*given, *more, f"--output_dir={out}", module=MODULE)
    assert result.returncode == 0, result.stderr
    assert "400 subjects × 8 items of grades 1 to 4" in result.stdout
    table = pd.read_csv(out / "scale.csv").set_index("item_id")
    assert table.reason["against"] == "reversed"
    assert table.retained.sum() == 7
    assert table.threshold_3[table.retained == 1].notna().all()
    report = (out / "report.md").read_text()
    assert "run again with `--reverse=against`" in report
    assert "Eigenvalues of the polychoric correlations" in report
    assert "C2 = " in report
    for picture in PICTURES:
        assert imread(out / picture).std() > 0.01
    scores = pd.read_csv(out / "score_table.csv")
    assert scores.score.tolist() == list(range(7, 29))
    assert len(pd.read_csv(out / "short_form.csv")) == 3
    assert pd.read_csv(out / "groups_raw_score.csv").p_value[0] < 1e-6
    assert json.loads((out / "scale.json").read_text())["overall_fit"]["name"] == "C2"
    result = run(
        *given, "--missing=by_design", "--reverse=against", "--model=gpcm", f"--output_dir={out}", module=MODULE
    )
    assert result.returncode == 0, result.stderr
    assert pd.read_csv(out / "scale.csv").reason.isna().all()
    assert_bad_flags(
        MODULE,
        [
            ([*given], "drop these subjects (--missing=drop), or use what they answered (--missing=by_design)"),
            ([*given, "--missing=wrong"], "--missing=wrong is of right and wrong answers"),
            ([*given, "--missing=drop", "--guessing=0.2"], "--guessing has no effect with grades"),
            ([*given, "--missing=drop", "--reverse=no"], "--reverse: item 'no' is not in"),
        ],
        tmp_path,
    )
