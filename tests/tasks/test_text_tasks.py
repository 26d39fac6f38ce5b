"""SST-2 and SNLI: order, labels that are withheld or missing, ids, word vectors from a file."""

import csv

import numpy as np
import pytest
from tfds_files import write_dataset

from irtjax import InputError, tasks
from irtjax.soft_labels.items import unseen
from irtjax.tasks.extra_items import read_split
from irtjax.tasks.task import SPLITS, UNKNOWN


@pytest.fixture(autouse=True)
def own_cache(request, tmp_path, monkeypatch):
    if "shared" not in request.fixturenames:
        monkeypatch.setenv("IRTJAX_CACHE", str(tmp_path / "cache"))


PHRASES = ["a good film ", "a bad film ", "good , good fun ", "bad ", "a film ", "so bad ", "fun "]


@pytest.fixture
def sst2(tmp_path):
    def rows(phrases, labels):
        return [{"sentence": p, "label": y, "idx": at} for at, (p, y) in enumerate(zip(phrases, labels, strict=True))]

    splits = {
        "train": rows(PHRASES, [1, 0, 1, 0, 1, 0, 1])[::-1],  # TFDS shuffles
        "validation": rows(["a splendid film ", " "], [1, 0]),
        "test": rows(["good fun ", "so-so film "], [-1, -1])[::-1],
    }
    write_dataset(tmp_path / "data", "glue/sst2", splits, "2.0.0")
    return str(tmp_path / "data")


@pytest.fixture
def snli(tmp_path):
    pairs = [("A man sleeps.", "A man is awake.", 2), ("A man sleeps.", "He dreams.", 1), ("A dog.", "An animal.", 0)]
    records = [{"premise": premise, "hypothesis": hypothesis, "label": label} for premise, hypothesis, label in pairs]
    unlabelled = {"premise": "Two men.", "hypothesis": "Brothers.", "label": -1}
    test = {"premise": "A dog .", "hypothesis": "an animal", "label": 0}
    write_dataset(
        tmp_path / "data",
        "snli",
        {"train": [records[0], unlabelled, *records[1:]], "validation": records, "test": [test]},
    )
    return str(tmp_path / "data")


def write_csv(path, *rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return str(path)


def test_sst2_is_in_order_of_idx_with_its_original_texts(sst2, tmp_path):
    labels = write_csv(tmp_path / "labels.csv", ("idx", "label"), (1, 0), (0, 1), (7, 1))
    task = tasks.load("sst2", sst2, test_labels=labels, vectors="random", embedding_dim=5)
    assert task.classes == ("negative", "positive")
    assert list(task.train.ids) == [f"sst2_train_{at:05d}" for at in range(7)]
    assert list(task.train.labels) == [1, 0, 1, 0, 1, 0, 1]
    assert task.train.labels.dtype == np.int32
    assert list(task.test.ids) == ["sst2_test_00000", "sst2_test_00001"]
    assert list(task.test.labels) == [1, 0]
    assert tasks.describe(task, task.test) == ["good fun", "so-so film"]
    assert tasks.describe(task, task.test._replace(texts=None)) == ["good fun", "<unknown> film"]
    assert task.format.vocabulary == ("<padding>", "<unknown>", "a", "bad", "film", "good", "fun")
    assert task.format.embeddings.shape == (7, 5)
    (inputs,) = task.train.inputs
    np.testing.assert_array_equal(inputs[2], [5, UNKNOWN, 5, 6])
    np.testing.assert_array_equal(task.validation.inputs[0][1], [UNKNOWN, 0, 0, 0])  # no words
    assert task.format.buckets[-1] == (4,)
    assert {task.split(name).inputs[0].shape[1] for name in SPLITS} == {4}


def test_sst2_labels_beside_the_data_set_are_found(sst2, tmp_path):
    write_csv(tmp_path / "data" / "glue" / "sst2_test_labels.csv", ("idx", "label"), (0, 0), (1, 1))
    assert list(tasks.load("sst2", sst2).test.labels) == [0, 1]


def test_sst2_without_test_labels_holds_out_training_phrases(sst2):
    notes = []
    task = tasks.load("sst2", sst2, on_note=notes.append)
    assert list(task.test.ids) == ["sst2_train_00005", "sst2_train_00006"]
    assert list(task.test.labels) == [0, 1]
    assert list(task.train.ids) == [f"sst2_train_{at:05d}" for at in range(5)]
    assert "the last 2 training phrases are the test split" in notes[0]
    assert "so" not in task.format.vocabulary  # which only these phrases have


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("id", "label")], "expected columns idx and label"),
        ([("idx", "label"), (0, 1)], "no row for idx 1"),
        ([("idx", "label"), (0, 1), (1, -1)], "line 3: expected a number and a label 0 or 1, not '1', '-1'"),
        ([("idx", "label"), (0, 1), ("x", 1)], "line 3: expected a number"),
        ([("idx", "label"), (0, 1), (0, 1)], "line 3 has idx 0 again"),
        ([("idx", "label"), (0,)], "line 2 has 1 cells, expected 2"),
        ([("idx", "label", "label"), (0, 1, 0)], "2 columns are called 'label'"),
        ([("idx", "label"), ("0\u0661", 1)], "line 2: expected a number"),
        ([("idx", "label"), ("1" * 5000, 1)], "line 2: expected a number"),
        ([("idx", "label"), ("1.0", 1)], "line 2: expected a number"),
        ([("idx", "label"), (-1, 1)], "line 2: expected a number"),
        ([("idx", "label"), (0, 1), ("00", 1)], "line 3 has idx 0 again"),
        ([("idx", "label"), (0, "")], "line 2: expected a number and a label 0 or 1, not '0', ''"),
        (
            [("idx", "label"), (0, "1\n"), (1, "x\ny")],
            r"line 5: expected a number and a label 0 or 1, not '1', 'x\\ny'",
        ),
    ],
)
def test_bad_test_labels_are_named(sst2, tmp_path, rows, message):
    path = write_csv(tmp_path / "labels.csv", *rows)
    with pytest.raises(InputError, match=f"{path}: {message}"):
        tasks.load("sst2", sst2, test_labels=path)


def test_test_labels_that_are_not_there(sst2, tmp_path):
    with pytest.raises(InputError, match=r"none.csv: cannot be read"):
        tasks.load("sst2", sst2, test_labels=str(tmp_path / "none.csv"))


def test_snli_drops_pairs_without_a_label_and_keeps_positions(snli):
    task = tasks.load("snli", snli, vectors="random")
    assert list(task.train.ids) == ["snli_train_000000", "snli_train_000002", "snli_train_000003"]
    assert list(task.train.labels) == [2, 1, 0]
    assert [part.shape for part in task.train.inputs] == [(3, 4), (3, 6)]
    assert tasks.describe(task, task.train)[0] == "A man sleeps. / A man is awake."
    assert "brothers" not in task.format.vocabulary
    assert list(tasks.bucket_of(task.test.inputs, task.format.buckets)) == [0]


def test_glove_words_join_the_vocabulary(sst2, tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("film 1 0\nsplendid 0 1\nso 2 2\nelsewhere 3 3\n")
    notes = []
    task = tasks.load("sst2", sst2, glove=str(path), on_note=notes.append)
    assert task.format.vocabulary[-2:] == ("so", "splendid")  # rare in training, and of validation alone
    assert "elsewhere" not in task.format.vocabulary
    at = task.format.vocabulary.index("splendid")
    assert at in task.validation.inputs[0][0]
    np.testing.assert_array_equal(task.format.embeddings[at], [0, 1])
    words = len(task.format.vocabulary) - 2
    assert notes[-1] == f"{path}: vectors for 3 of {words} words"


def test_items_are_named_by_their_text(sst2, tmp_path):
    path = write_csv(
        tmp_path / "items.csv",
        ("phrase_id", "text"),
        ("101", "A GOOD film."),
        ("102", "good fun!"),
        ("103", ""),
        ("104", "nowhere"),
        ("a long id for a short phrase", "fun"),
    )
    notes = []
    write_csv(tmp_path / "data" / "glue" / "sst2_test_labels.csv", ("idx", "label"), (0, 0), (1, 1))
    task = tasks.load("sst2", sst2, item_ids=path, on_note=notes.append)
    assert list(task.train.ids[[0, 1, 6]]) == ["101", "sst2_train_00001", "a long id for a short phrase"]
    assert list(task.test.ids) == ["102", "sst2_test_00001"]
    assert notes[-1] == f"{path}: 3 of 4 rows with a text found"


def test_items_with_labels_and_doubles(snli, tmp_path):
    header = ("pair_id", "premise", "hypothesis", "gold_label")
    path = write_csv(
        tmp_path / "items.csv",
        header,
        ("animal", "a dog", "an animal", "entailment"),  # in all splits: the test split is meant
        ("wrong", "A man sleeps.", "He dreams.", "entailment"),
        ("none", "A man sleeps.", "He dreams.", "-"),
        ("double", "A man sleeps.", "A man is awake.", "2"),
        ("trouble", "A man sleeps.", "A man is awake.", "contradiction"),
    )
    notes = []
    task = tasks.load("snli", snli, item_ids=path, on_note=notes.append)
    assert list(task.test.ids) == ["animal"]
    assert list(task.train.ids) == ["snli_train_000000", "snli_train_000002", "snli_train_000003"]
    assert notes == [
        "snli: 3 examples repeat the input of another; 3 inputs lie in more than one split, such as snli_train_000000 "
        "of train, which is snli_validation_000000 of validation: accuracy on them flatters",
        f"{path}: 1 of 4 rows with a text found; 2 left out, whose text stands for several examples or rows",
    ]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("id", "text")], "expected columns text, and one of item_id, phrase_id, pair_id"),
        ([("item_id", "text"), ("1", "fun"), ("1", "bad")], "item_id '1' is there twice, in lines 2 and 3"),
        ([("item_id", "text"), ("", "fun")], "line 2 has no item_id"),
        ([("item_id", "text"), ("1", "elsewhere")], "none of its 1 texts is an example of the task"),
        ([("item_id", "text", "label"), ("1", "fun", "good")], "line 2 has label 'good', expected one of negative"),
        ([("item_id", "text", "label"), ("1", "fun", "０")], "line 2 has label '０', expected one of negative"),
        ([("item_id", "text"), ("1", "fun"), ("2", "bad", "x")], "line 3 has 3 cells, expected 2"),
        ([("item_id", "text", "text"), ("1", "fun", "bad")], "2 columns are called 'text'"),
        ([("item_id", "text"), ("1\0", "fun")], "line 2: item_id '1.x00' ends in a NUL"),
        ([("item_id", "text"), ("x" * 1001, "fun")], "an id has 1,001 characters, expected at most 1,000"),
        ([("item_id", "text"), ("sst2_train_00000", "fun")], "the id 'sst2_train_00000' is that of another example"),
    ],
)
def test_bad_item_files_are_named(sst2, tmp_path, rows, message):
    path = write_csv(tmp_path / "items.csv", *rows)
    with pytest.raises(InputError, match=f"{path}: {message}"):
        tasks.load("sst2", sst2, item_ids=path)


def test_names_are_kept_as_they_are(sst2, tmp_path):
    names = [" 101", "101 ", "NA", "007", "x,y"]
    path = write_csv(tmp_path / "items.csv", ("item_id", "text"), *zip(names, PHRASES[2:], strict=True))
    task = tasks.load("sst2", sst2, item_ids=path)
    assert [*task.train.ids, *task.test.ids][2:] == names


def test_extra_items_are_a_split_of_their_own(sst2, snli, tmp_path):
    path = write_csv(
        tmp_path / "extra.csv",
        ("phrase_id", "label", "text"),
        ("9", "positive", "a really splendid long film about nothing that anybody knows"),
        ("007", "0", "so bad"),
    )
    task, plain = tasks.load("sst2", sst2, extra_items=path), tasks.load("sst2", sst2)
    assert (task.splits, plain.splits) == ((*SPLITS, "extra"), SPLITS)
    assert list(task.extra.ids) == ["9", "007"]
    assert list(task.extra.labels) == [1, 0]
    assert task.extra.texts[1] == "so bad"
    width = task.extra.inputs[0].shape[1]
    assert width == task.train.inputs[0].shape[1] == task.format.buckets[-1][0] >= 10
    assert task.format.vocabulary == plain.format.vocabulary  # that of the training text
    np.testing.assert_array_equal(task.extra.inputs[0][1, :2], task.test.inputs[0][0, :2])  # "so bad"
    np.testing.assert_array_equal(task.format.embeddings, plain.format.embeddings)
    pairs = write_csv(tmp_path / "pairs.csv", ("pair_id", "premise", "hypothesis", "gold_label"), ("p", "A", "B", "2"))
    assert list(tasks.load("snli", snli, extra_items=pairs).extra.labels) == [2]
    again = read_split(path, task)  # in the words of a task that is there already
    np.testing.assert_array_equal(again.inputs[0], task.extra.inputs[0])
    cut = read_split(path, plain).inputs[0]
    np.testing.assert_array_equal(cut, task.extra.inputs[0][:, : cut.shape[1]])
    assert again.texts[1] == "so bad"
    assert list(unseen(again, plain.test).ids) == ["9"]  # the other is tested on
    with pytest.raises(InputError, match="digits has no texts"):
        read_split(path, tasks.load("digits"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("item_id", "text")], "expected columns text, label, and one of item_id, phrase_id, pair_id"),
        ([("item_id", "text", "label")], "no examples"),
        ([("item_id", "text", "label"), ("1", "fun", "1"), ("1", "bad", "0")], "item_id '1' is there twice"),
        ([("item_id", "text", "label"), ("1", " ", "1")], "line 2 has no text: leave it out"),
        ([("item_id", "text", "label"), ("1", "fun", "-1")], "line 2 has label '-1', expected one of negative"),
    ],
)
def test_bad_extra_items_are_named(sst2, tmp_path, rows, message):
    path = write_csv(tmp_path / "items.csv", *rows)
    with pytest.raises(InputError, match=f"{path}: {message}"):
        tasks.load("sst2", sst2, extra_items=path)


def test_describing_images_is_refused():
    task = tasks.load("digits")
    with pytest.raises(InputError, match="digits: the examples are images"):
        tasks.describe(task, task.test)


@pytest.mark.slow
def test_sst2_as_published(shared):
    notes = []
    items = shared / "human_responses" / "sst_emnlp2018" / "sst_items.csv"
    task = tasks.load("sst2", str(shared / "tfds"), item_ids=str(items), on_note=notes.append)
    assert [list(np.bincount(task.split(name).labels)) for name in SPLITS] == [[29780, 37569], [428, 444], [912, 909]]
    assert task.train.ids[-1] == "sst2_train_67348"
    assert task.validation.texts[0] == "it 's a charming and often affecting journey ."
    assert task.train.inputs[0].dtype == np.uint16
    assert all((task.split(name).inputs[0][:, 0] != 0).all() for name in SPLITS)
    # all but one of the 77 that are not neutral, which SST-2 leaves out: the copies spell "favour" and "favor"
    assert notes == [
        "sst2: 371 examples repeat the input of another; 5 inputs have more than one label",
        f"{items}: 76 of 98 rows with a text found",
    ]
    assert "25083" in task.test.ids
    squares = np.mean(task.format.embeddings[1:] ** 2)
    np.testing.assert_allclose(squares, 1, rtol=1e-4)
    shares = np.bincount(tasks.bucket_of(task.train.inputs, task.format.buckets)) / len(task.train.labels)
    assert len(shares) == 6
    assert shares.min() > 0.01


@pytest.mark.slow
def test_snli_pairs_find_their_published_ids(shared):
    notes = []
    load = {"dataset": "snli_subset", "vectors": "random", "on_note": notes.append}
    items = shared / "human_responses" / "snli_emnlp2016" / "snli_items.csv"
    tasks.load("snli", str(shared / "tfds"), item_ids=str(items), **load)
    items = shared / "model_responses" / "snli_test_items.csv"
    task = tasks.load("snli", str(shared / "tfds"), item_ids=str(items), **load)
    assert [note.split(": ")[1] for note in notes] == [
        "3 examples repeat the input of another",
        "13 of 13 rows with a text found",
        "3 examples repeat the input of another",
        "9,824 of 9,824 rows with a text found",
    ]
    assert sorted(task.test.ids) == sorted(f"snli_{at}" for at in range(9824))
    assert [list(np.bincount(task.split(name).labels)) for name in SPLITS] == [
        [6015, 5899, 6086],
        [3329, 3235, 3278],
        [3368, 3219, 3237],
    ]
