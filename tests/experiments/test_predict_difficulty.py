"""`experiments.predict_difficulty`, as a user runs it."""

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, assert_one_line, run
from scipy.special import expit

import irtjax
from experiments.reports.predict_difficulty import FILES, FORMER
from irtjax import ResponseMatrix

MODULE = "experiments.predict_difficulty"
SUBJECTS, ITEMS = 40, 60
EASY, HARD = ("good", "fine", "fun"), ("sophisticated", "oblique", "rare")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Items that are harder for each hard word of their text and in one of two kinds; five more without responses."""
    folder, rng = tmp_path_factory.mktemp("items"), np.random.default_rng(0)
    hard = rng.integers(0, 4, ITEMS + 5)
    texts = [" ".join([*rng.choice(HARD, some), *rng.choice(EASY, 5 - some)]) for some in hard]
    kind = rng.integers(0, 2, ITEMS + 5)
    difficulty = 1.0 * hard - 1.5 + 1.5 * kind + 0.2 * rng.normal(size=ITEMS + 5)
    ids = np.array([f"i{at}" for at in range(ITEMS + 5)])
    table = pd.DataFrame({"item_id": ids, "text": texts, "kind": np.where(kind, "b", "a")})
    table[:ITEMS].to_csv(folder / "texts.csv", index=False)
    table[ITEMS:].assign(truth=difficulty[ITEMS:]).to_csv(folder / "new.csv", index=False)
    values = (rng.random((SUBJECTS, ITEMS)) < expit(rng.normal(size=(SUBJECTS, 1)) - difficulty[:ITEMS])).astype(
        np.int8
    )
    values[:, -1] = -1  # nobody has answered it
    names = [f"s{at}" for at in range(SUBJECTS)], ids[:ITEMS]
    irtjax.write_responses(ResponseMatrix(values, *names), folder / "responses.csv")
    return folder


@pytest.fixture(scope="module")
def result(folder, tmp_path_factory):
    directory = tmp_path_factory.mktemp("run") / "out"
    given = [f"--responses={folder}/responses.csv", f"--texts={folder}/texts.csv", f"--new_items={folder}/new.csv"]
    ended = run(*given, "--covariates=kind", "--folds=2", f"--output_dir={directory}", module=MODULE)
    assert ended.returncode == 0, ended.stderr
    return directory, ended


def test_writes_what_it_promises(result):
    directory, ended = result
    names = {path.name for path in directory.iterdir()}
    assert names == {*FILES, *FORMER, "fit"}
    scores = pd.read_csv(directory / "predictors.csv")
    expected = ["features", "features, in two steps", "TF-IDF", "columns", "length", "mean"]
    assert scores.predictor.tolist() == expected
    assert f"Spearman {scores.spearman[0]:.3f}" in ended.stdout
    report = (directory / "report.md").read_text()
    assert f"Spearman {scores.spearman[0]:.3f}" in report
    assert all(f"| {name} |" in report for name in expected)
    curve = pd.read_csv(directory / "curve.csv")
    assert curve.responses.unique().tolist() == [0, 1, 2, 5, 10, 20]
    items = pd.read_csv(directory / "items.csv")
    assert len(items) == ITEMS - 1  # the one without responses is left out
    assert irtjax.load_fit(directory / "fit").regression is not None


def test_columns_and_words_predict(result):
    scores = pd.read_csv(result[0] / "predictors.csv").set_index("predictor")
    assert scores.spearman["columns"] > 0.3
    assert scores.spearman["TF-IDF"] > 0.3
    assert scores.rmse["columns"] < scores.rmse["mean"]


def test_new_items(result, folder):
    """The kind is all that features know, beside the length: its two groups lie 1.5 apart."""
    new = pd.read_csv(result[0] / "new_items.csv")
    given = pd.read_csv(folder / "new.csv")
    assert new.item_id.tolist() == given.item_id.tolist()
    assert new.text.tolist() == given.text.tolist()
    assert new.difficulty[given.kind == "b"].min() > new.difficulty[given.kind == "a"].max() + 0.5
    assert ((new.low < given.truth) & (given.truth < new.high)).all()


def test_bad_input_gets_one_line(folder, tmp_path):
    responses, texts = f"--responses={folder}/responses.csv", f"--texts={folder}/texts.csv"
    (tmp_path / "few.csv").write_text("item_id,text\ni0,good\nelsewhere,bad\n")
    (tmp_path / "words.csv").write_text("item_id,about\ni0,good\n")
    (tmp_path / "same.csv").write_text("item_id,text,kind\ni0,good,\n")
    pd.read_csv(folder / "texts.csv").assign(size=1e300).to_csv(tmp_path / "huge.csv", index=False)
    assert_bad_flags(
        MODULE,
        [
            ([responses], "--texts"),
            ([texts], "--responses"),
            ([responses, "--texts={tmp}/few.csv"], "few.csv: has 1 of the 60 items of"),
            ([responses, "--texts={tmp}/words.csv"], "words.csv: no column text, nor premise and hypothesis"),
            ([responses, "--texts={tmp}/same.csv", "--covariates=kind"], "same.csv: item i0: no kind"),
            ([responses, texts, "--text_columns=about"], "texts.csv: no column about"),
            ([responses, texts, "--covariates=about"], "texts.csv: no column about"),
            ([responses, texts, "--new_items={tmp}/words.csv"], "words.csv: no column text"),
            ([responses, texts, "--pretrained={tmp}"], "config.json"),
            ([responses, texts, "--glove={tmp}/none.txt"], "error: {tmp}/none.txt: cannot be read"),
            ([responses, "--texts={tmp}/huge.csv", "--covariates=size"], "huge.csv: features 'columns' of item 'i0':"),
            ([responses, texts, "--folds=1"], "--folds"),
            ([responses, texts, "--folds=30"], "--folds=30 of 59 items, expected two items or more in each"),
        ],
        tmp_path,
    )


def test_an_input_is_not_overwritten(folder):
    given = [f"--responses={folder}/responses.csv", f"--texts={folder}/items.csv", f"--output_dir={folder}"]
    (folder / "items.csv").write_text((folder / "texts.csv").read_text())
    assert_one_line(run(*given, module=MODULE), "items.csv")
    (folder / "new_items.csv").write_text((folder / "new.csv").read_text())
    given = [f"--responses={folder}/responses.csv", f"--texts={folder}/texts.csv", f"--output_dir={folder}"]
    assert_one_line(run(*given, f"--new_items={folder}/new_items.csv", module=MODULE), "new_items.csv")


@pytest.mark.slow
def test_texts_of_one_word_and_nothing_else(folder, tmp_path):
    """No encoder, no columns, and no word twice: nothing to draw a map of, and no TF-IDF."""
    words = pd.DataFrame({"item_id": [f"i{at}" for at in range(ITEMS)], "text": [f"word{at}" for at in range(ITEMS)]})
    words.to_csv(tmp_path / "words.csv", index=False)
    directory = tmp_path / "out"
    given = [f"--responses={folder}/responses.csv", f"--texts={tmp_path}/words.csv", "--folds=2"]
    ended = run(*given, f"--output_dir={directory}", module=MODULE)
    assert ended.returncode == 0, ended.stderr
    assert {path.name for path in directory.iterdir()} == {*FILES, "curve.csv", "curve.png", "fit"}
    assert pd.read_csv(directory / "predictors.csv").predictor.tolist() == [
        "features", "features, in two steps", "length", "mean"
    ]  # fmt: skip


@pytest.mark.slow
def test_locations_of_grades_and_difficulties_of_counts(folder, tmp_path):
    """Subjects have two questions on each item: grades 0 to 2, or counts of two trials."""
    rng, texts = np.random.default_rng(1), pd.read_csv(folder / "texts.csv")
    hard = texts.text.str.count("|".join(HARD)) - 1.5 + 1.5 * (texts.kind == "b")
    p = expit(rng.normal(size=(80, 1)) - hard.to_numpy())
    sums = pd.DataFrame((rng.random((2, *p.shape)) < p).sum(axis=0), [f"s{j}" for j in range(80)], texts.item_id)
    sums.to_csv(tmp_path / "grades.csv", index_label="subject_id")
    counts = sums.rename_axis("subject_id").reset_index().melt("subject_id", var_name="item_id", value_name="response")
    counts.assign(trials=2).to_csv(tmp_path / "counts.csv", index=False)
    given = f"--texts={folder}/texts.csv", f"--new_items={folder}/new.csv", "--covariates=kind", "--folds=2"
    for name, more, what in (
        ("grades", [], "Locations (means of the thresholds)"),
        ("counts", ["--model=binomial"], "Difficulties"),
    ):
        out = tmp_path / name
        ended = run(*given, *more, f"--responses={tmp_path}/{name}.csv", f"--output_dir={out}", module=MODULE)
        assert ended.returncode == 0, ended.stderr
        assert f"{what} of held-out items are predicted" in ended.stdout
        scores = pd.read_csv(out / "predictors.csv").set_index("predictor")
        assert scores.rmse["features"] < 0.95 * scores.rmse["mean"]  # the kind is all that they know
        assert scores.coverage["features"] > 0.85
        assert (out / "curve.csv").exists() == (name == "counts")
        items = pd.read_csv(out / "items.csv")
        assert np.corrcoef(items.by_responses, hard)[0, 1] > 0.8
        new = pd.read_csv(out / "new_items.csv")
        truth = pd.read_csv(folder / "new.csv")
        assert new.difficulty[truth.kind == "b"].min() > new.difficulty[truth.kind == "a"].max()
    assert_bad_flags(
        MODULE,
        [([*given, f"--responses={folder}/responses.csv", "--model=rasch", "--grades=0,1"], "--grades has no effect")],
        tmp_path,
    )
