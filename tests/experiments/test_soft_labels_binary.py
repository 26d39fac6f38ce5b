"""The soft-label binary as a user runs it."""

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, run
from matplotlib.image import imread

from experiments.common.soft_items import counts_of_networks, of_answers, of_predictions, of_shares
from experiments.reports.soft_labels import published_for
from irtjax import FitWarning, InputError, tasks
from irtjax.soft_labels.labels import people_and_networks
from irtjax.tasks.task import select

TASK = tasks.load("digits")
SMALL = ["--task=digits", "--width=8", "--epochs=3", "--seeds=3"]
MODULE = "experiments.soft_labels"
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def predictions(tmp_path_factory):
    """What 30 networks predict, most of them right."""
    labels = TASK.train.labels
    wrong = RNG.random((30, labels.size)) < 0.3
    classes = np.where(wrong, RNG.integers(0, 10, wrong.shape), labels).astype(np.int8)
    path = tmp_path_factory.mktemp("crowd") / "predictions_train.npz"
    np.savez(path, predictions=classes, subject_ids=np.arange(30).astype(str), item_ids=TASK.train.ids)
    return path


@pytest.fixture(scope="module")
def with_extra():
    """Digits with texts, and ten of the test examples as further items that people have answered."""
    splits = {}
    for name in ("train", "validation", "test"):
        split = getattr(TASK, name)
        splits[name] = split._replace(texts=np.array([f"digit {item}" for item in split.ids], object))
    extra = select(splits["test"], np.arange(10))
    extra = extra._replace(ids=np.array([f"item {at}" for at in range(10)]))
    return tasks.Task("toy", **splits, classes=TASK.classes, format=TASK.format, extra=extra)


@pytest.mark.slow
def test_a_network_of_ones_own(predictions, tmp_path):
    network = "--network=tests.networks.example_networks:Perceptron"
    flags = [*SMALL, network, "--methods=B1,I-CCE", f"--predictions={predictions}", f"--output_dir={tmp_path / 'run'}"]
    result = run(*flags, module=MODULE)
    assert result.returncode == 0, result.stderr
    report = (tmp_path / "run" / "report.md").read_text()
    assert "Test accuracy of `tests.networks.example_networks:Perceptron` at the best validation epoch" in report
    assert pd.read_csv(tmp_path / "run" / "soft_labels" / "methods.csv").test_accuracy.min() > 0.3


@pytest.mark.slow
def test_a_run_leaves_the_promised_files(predictions, tmp_path):
    directory = tmp_path / "run"
    methods = "--methods=B1,B0,I-CCE,S-CCE"
    result = run(*SMALL, methods, f"--predictions={predictions}", f"--output_dir={directory}", module=MODULE)
    assert result.returncode == 0, result.stderr
    report = (directory / "report.md").read_text()
    assert imread(directory / "gold_probability.png").std() > 0.01
    assert "120 items have soft labels" in report
    assert "distillation" in report
    table = pd.read_csv(directory / "soft_labels" / "methods.csv")
    assert table.method.tolist() == [name for name in ("B1", "B0", "I-CCE", "S-CCE") for _ in range(3)]
    assert table.seed.tolist() == [0, 1, 2] * 4
    assert table.test_accuracy.between(0.3, 1).all()
    confusion = pd.read_csv(directory / "soft_labels" / "confusion.csv")
    counts = confusion[confusion.method == "B0"][list(TASK.classes)].to_numpy()
    np.testing.assert_allclose(counts.sum(1), np.bincount(TASK.test.labels), rtol=1e-4)
    accuracy = table[table.method == "B0"].test_accuracy.mean()
    assert np.trace(counts) / counts.sum() == pytest.approx(accuracy, abs=1e-4)


@pytest.mark.slow
def test_a_run_with_items_held_out(predictions, tmp_path):
    directory = tmp_path / "run"
    flags = ["--methods=B1,I-CCE,S-CCE", "--epochs_in_a_row=1", "--held_out=0.25", "--permuted", "--equal_passes"]
    result = run(*SMALL, *flags, f"--predictions={predictions}", f"--output_dir={directory}", module=MODULE)
    assert result.returncode == 0, result.stderr
    table = pd.read_csv(directory / "soft_labels" / "methods.csv")
    of_items = pd.read_csv(directory / "soft_labels" / "held_out.csv")
    names = ["B1", "I-CCE", "S-CCE", "I-CCE permuted"]
    assert of_items.groupby("method", sort=False).size().to_dict() == dict.fromkeys(names, 30)
    for what in ("kl", "kl_at_best"):
        by_seed, by_item = (rows.groupby("method")[what].mean() for rows in (table, of_items))
        np.testing.assert_allclose(by_seed, by_item, rtol=1e-4)
        assert (by_seed > 0).all()
    assert (table.kl_at_best <= table.kl).all()
    assert table.best_epoch.max() <= 6
    report = (directory / "report.md").read_text()
    assert "on 30 items with soft labels" in report
    assert "90 items have soft labels, beside those held out" in report
    gain = table.pivot(index="seed", columns="method", values="kl").eval("`I-CCE` - `I-CCE permuted`").mean()
    assert f"on the items held out KL {gain:+.4f} ± " in report
    assert "To say always equal shares has " in report


def test_soft_labels_of_a_crowd(predictions):
    found = of_predictions(str(predictions), 0.05, TASK, 0)
    assert found.removed == {"train": 60}
    classes = np.load(predictions)["predictions"]
    places = pd.Index(TASK.train.ids).get_indexer(found.items.split.ids)
    for at, place in enumerate(places[:5]):
        np.testing.assert_array_equal(found.items.counts[at], np.bincount(classes[:, place], minlength=10))
    assert not set(found.task.train.ids) & set(found.items.split.ids)


def test_soft_labels_of_people(with_extra, tmp_path):
    """Answers in codes; an item without a text is left out of training, not of the answers."""
    cells = RNG.choice(["a", "b", "na", ""], (12, 11))
    names = [*with_extra.extra.ids[::-1], "without a text"]
    table = pd.DataFrame(cells, columns=names, index=pd.Index(range(12), name="subject"))
    table.iloc[0] = "a"
    table.to_csv(tmp_path / "answers.csv")
    left = r"1 of the 11 items of \S+answers\.csv are not in --extra_items: not trained on"
    with pytest.warns(FitWarning, match=f"^{left}$"):
        found = of_answers(str(tmp_path / "answers.csv"), {"a": "3", "b": "7"}, with_extra)
    assert (found.answers.num_people, len(found.answers.item_ids)) == (12, 11)
    assert found.removed == {"train": 0, "validation": 0, "test": 10}
    np.testing.assert_array_equal(found.items.split.ids, with_extra.extra.ids)
    for item, counts in zip(found.items.split.ids, found.items.counts, strict=True):
        assert counts[[3, 7]].tolist() == [(table[item] == "a").sum(), (table[item] == "b").sum()]
        assert counts.sum() == counts[[3, 7]].sum()
    table = table.drop(columns="without a text")
    table.to_csv(tmp_path / "answers.csv")
    with pytest.raises(InputError, match=r"answer 'b' stands for no class of toy; say for which by --codes=b:0"):
        of_answers(str(tmp_path / "answers.csv"), {"a": "3"}, with_extra)
    with pytest.raises(InputError, match="--codes=a:x: toy has no class x"):
        of_answers(str(tmp_path / "answers.csv"), {"a": "x"}, with_extra)
    table.assign(**{"item 3": "na"}).to_csv(tmp_path / "none.csv")
    with pytest.raises(InputError, match=r"none\.csv: item item 3 has no answers: leave it out of --extra_items"):
        of_answers(str(tmp_path / "none.csv"), {"a": "3", "b": "7"}, with_extra)
    with pytest.raises(InputError, match="--extra_items is missing"):
        of_answers(str(tmp_path / "answers.csv"), {"a": "3", "b": "7"}, TASK)


def test_labels_of_some_people_and_of_networks(with_extra, tmp_path):
    ids = with_extra.extra.ids
    cells = pd.DataFrame(RNG.choice(list("37"), (15, 10)), columns=ids, index=pd.Index(range(15), name="subject"))
    cells.to_csv(tmp_path / "answers.csv")
    found = of_answers(str(tmp_path / "answers.csv"), {"3": "3", "7": "7"}, with_extra)
    some = found.of_people(4, 1)
    assert (some.counts.sum(1) == 4).all()
    assert (some.counts <= found.items.counts).all()
    assert (found.of_people(4, 2).counts != some.counts).any()
    with pytest.raises(InputError, match="--respondents=16: there are answers of 15 people"):
        found.of_people(16, 0)
    classes = RNG.integers(0, 10, (6, 12)).astype(np.int8)
    path = tmp_path / "predictions_extra.npz"
    np.savez(path, predictions=classes, item_ids=np.array(["x", *ids[::-1], "y"]))
    counts = counts_of_networks(str(path), found.items.split, with_extra)
    np.testing.assert_array_equal(counts[0], np.bincount(classes[:, 10], minlength=10))
    table = people_and_networks(ids, np.arange(10.0), found.items.shares, counts)
    p, q = found.items.shares[0], (counts[0] + 0.5) / 11
    assert table.kl[0] == pytest.approx(sum(p[k] * np.log(p[k] / q[k]) for k in (3, 7)))
    np.savez(path, predictions=classes[:, :3], item_ids=np.array(["x", "y", ids[0]]))
    with pytest.raises(InputError, match="no predictions for item 1: was the crowd asked for it"):
        counts_of_networks(str(path), found.items.split, with_extra)


def test_shares_from_a_table(with_extra, tmp_path):
    path = tmp_path / "shares.csv"
    table = pd.DataFrame(RNG.dirichlet(np.ones(10), 10), columns=list(TASK.classes))
    table.insert(0, "item_id", with_extra.extra.ids)
    table.to_csv(path, index=False)
    found = of_shares(str(path), with_extra)
    np.testing.assert_allclose(found.items.shares, table[list(TASK.classes)], rtol=1e-6)
    assert found.items.counts is None
    numbers = pd.DataFrame(RNG.multinomial(50, np.full(10, 0.1), 10), columns=list(TASK.classes))
    numbers.insert(0, "item_id", with_extra.extra.ids)
    numbers.to_csv(path, index=False)
    counted = of_shares(str(path), with_extra).items
    np.testing.assert_array_equal(counted.counts, numbers[list(TASK.classes)])
    np.testing.assert_allclose(counted.shares, numbers[list(TASK.classes)] / 50)
    table.assign(**{"4": 0.9}).to_csv(path, index=False)
    with pytest.raises(InputError, match=r"shares.csv: item item 0: its soft labels sum to \S+, expected 1"):
        of_shares(str(path), with_extra)
    pd.concat([table, table[:1]]).to_csv(path, index=False)
    with pytest.raises(InputError, match=r"shares\.csv: item_id 'item 0' is there twice"):
        of_shares(str(path), with_extra)
    table.drop(columns="4").to_csv(path, index=False)
    with pytest.raises(InputError, match="no column 4; expected item_id and 0, 1"):
        of_shares(str(path), with_extra)
    others = table.assign(item_id=[f"other {at}" for at in range(10)])
    both = (r"7 of the 10 items of \S+shares\.csv are not in ", r"7 of the 10 items of --extra_items are not in ")
    pd.concat([table[:3], others[3:]]).to_csv(path, index=False)
    with pytest.warns(FitWarning, match=both[0]), pytest.warns(FitWarning, match=both[1]):
        found = of_shares(str(path), with_extra)
    assert found.items.split.ids.tolist() == with_extra.extra.ids[:3].tolist()
    others.to_csv(path, index=False)
    with pytest.raises(InputError, match="none of its 10 items is in --extra_items"):
        of_shares(str(path), with_extra)


def test_items_that_are_held_out(with_extra, tmp_path):
    """A share of the items, with what is known of them; the others keep the answers of their own columns."""
    ids = with_extra.extra.ids
    cells = pd.DataFrame(RNG.choice(list("37"), (15, 10)), columns=ids[::-1], index=pd.Index(range(15), name="subject"))
    cells.to_csv(tmp_path / "answers.csv")
    found = of_answers(str(tmp_path / "answers.csv"), {}, with_extra)
    some = found.holding_out(0.3, 0)
    left, held = some.items, some.held_out
    assert (len(left.split.ids), len(held.split.ids)) == (7, 3)
    assert sorted([*left.split.ids, *held.split.ids]) == sorted(ids)
    assert some.task is found.task
    for items in (left, held, some.of_people(15, 0)):
        for item, counts in zip(items.split.ids, items.counts, strict=True):
            assert counts[[3, 7]].tolist() == [(cells[item] == "3").sum(), (cells[item] == "7").sum()]
    assert set(found.holding_out(0.3, 1).held_out.split.ids) != set(held.split.ids)
    for share, number in ((0.01, 0), (1.0, 10)):
        with pytest.raises(InputError, match=rf"--held_out={share:g}: of 10 items, {number} would be held out"):
            found.holding_out(share, 0)


def test_published_figures_stand_beside_both_kinds_of_lstm():
    assert published_for("snli", "lstm_study") == published_for("snli", "lstm")
    assert published_for("snli", "lstm_study")["S-CCE"] == 77.4
    assert published_for("snli", "nse") != published_for("snli", "esim")
    assert published_for("mnist", "lenet_study") == published_for("snli", "cnn_study") == {}


def test_bad_input_gets_one_line_and_leaves_nothing(predictions, tmp_path):
    given = f"--predictions={predictions}"
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "others.npz", predictions=np.zeros((3, 2), np.int8), item_ids=np.array(["a", "b"]))
    np.savez(tmp_path / "twice.npz", predictions=np.zeros((3, 2), np.int8), item_ids=np.array(["a", "a"]))
    np.savez(tmp_path / "classes.npz", predictions=np.full((3, 2), 12, np.int8), item_ids=np.array(["a", "b"]))
    cases = [
        ([], "expected one of --answers, --soft_labels, --predictions, found 0"),
        ([given, "--answers=a.csv"], "expected one of --answers, --soft_labels, --predictions, found 2"),
        ([given, "--codes=a:1"], "--codes has no effect with --predictions"),
        ([given, "--methods=B9"], "--methods=B9: 'B9' is none of B0, B1, B2, B3"),
        ([given, "--methods=B2"], "--methods: B2 and --extra_data go together"),
        ([given, "--extra_data={tmp}/more.csv"], "more.csv: digits has no texts"),
        ([given, "--respondents=20"], "--respondents has no effect with --predictions"),
        (["--answers=a.csv", "--networks=n.npz"], "--networks needs --items: the difficulties of the items"),
        (["--answers=a.csv", "--items=i.csv"], "--items has no effect with no --networks"),
        (
            [given, "--soft_share=1", "--methods=B1,B0"],
            "B0 needs examples without soft labels, and --soft_share=1 leaves",
        ),
        ([given, "--soft_share=2"], "--soft_share=2"),
        ([given, "--held_out=1"], "--held_out=1: of 120 items, 120 would be held out"),
        ([given, "--methods=B1,I-CCE", "--equal_passes"], "--equal_passes has no effect with --methods=B1,I-CCE"),
        (["--predictions={tmp}/none.npz"], "none.npz"),
        (["--predictions={tmp}/text.npz"], "text.npz: not an NPZ file"),
        (["--predictions={tmp}/others.npz"], "others.npz: no predictions for digits_"),
        (["--predictions={tmp}/twice.npz"], "twice.npz: item a is there twice"),
        (["--predictions={tmp}/classes.npz"], "classes.npz: classes 12 to 12, digits has 10"),
    ]
    assert_bad_flags(MODULE, cases, tmp_path)
