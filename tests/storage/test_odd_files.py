"""Every kind of file that is read, damaged: it is read, or one line says what is wrong with it."""

import functools
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readers import damaged
from simulation import simulate

import irtjax
from experiments.commands.compare_difficulty import texts_of
from experiments.commands.score_networks import abilities_of
from experiments.commands.small_benchmark import scores_of
from experiments.common.run_directory import open_run, stage
from experiments.common.table_columns import column_of as flagged_column
from experiments.common.table_columns import columns_of as flagged_columns
from irtjax import InputError, tasks
from irtjax.auditing.choices import read_choices
from irtjax.auditing.contamination import _dates
from irtjax.crowd.members import read_members
from irtjax.estimation.covariates import as_predictors
from irtjax.estimation.grouping import membership
from irtjax.evaluation.item_bank import column_of, graded_bank, item_bank, quotas_of
from irtjax.fits.item_features import item_features
from irtjax.groups.known_curves import known_test
from irtjax.pretrained.folder import read_pretrained
from irtjax.pretrained.pieces import Pieces
from irtjax.selection import Curriculum
from irtjax.soft_labels.annotations import read_annotations
from irtjax.tasks import sst2
from irtjax.tasks.extra_items import read_examples
from irtjax.tasks.item_texts import read_item_texts
from irtjax.tasks.table_files import read_file
from irtjax.tasks.task import sample_split

LONGEST = 1000  # characters of a message, beside names of files

# what stands where a number, a name or a JSON value was
ODD = [
    "",
    " ",
    "nan",
    "NaN",
    "inf",
    "-1",
    "0",
    "1e400",
    "1e-400",
    "9" * 30,
    "1" * 400,
    "0x1",
    "1_0",
    "0.5",
    "null",
    "true",
]
ODD += [
    "[]",
    "{}",
    "[[1]]",
    '"',
    '"a"',
    "é",
    "日本",
    "\u202e",
    "\ufeff",
    "２",
    "a\\u0000",
    "\\ud800",
    "=1+1",
    "2pl",
    "graded",
]
TOKEN = re.compile(rb'"[^"]*"|[^\s,:"{}\[\]]+')


@st.composite
def replaced(draw: st.DrawFn, whole: bytes) -> bytes:
    """A text with some of its cells, or of its names and values, replaced."""
    for _ in range(draw(st.integers(1, 2))):
        tokens = list(TOKEN.finditer(whole))
        if not tokens:
            break
        at = draw(st.sampled_from(tokens))
        whole = whole[: at.start()] + draw(st.sampled_from(ODD)).encode() + whole[at.end() :]
    return whole


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        name: of the file in its folder.
        write: a valid one into a folder, with what it needs beside it.
        read: all of it, from the folder.
    """

    name: str
    write: Callable[[Path], Any]
    read: Callable[[Path], Any]


def text(name: str, content: str, read: Callable[[Path], Any]) -> Kind:
    """A file of text that is read by itself."""
    return Kind(name, lambda folder: (folder / name).write_text(content, encoding="utf-8"), lambda at: read(at / name))


def save_fit(folder: Path) -> None:
    irtjax.fit(simulate(60, 4, missing=0.1)[0], "1pl", standard_errors=False).save(folder)


def save_shards(folder: Path) -> None:
    responses = simulate(5, 6, missing=0.1)[0]
    parts = ((responses.values[:, at], responses.item_ids[at]) for at in (slice(0, 2), slice(2, 6)))
    irtjax.write_shards(parts, responses.subject_ids, folder / "r.shards")


def save_curriculum(folder: Path) -> None:
    Curriculum(pd.Series(np.linspace(-1, 1, 6), [f"i{at}" for at in range(6)]), batch_size=2).save(folder / "c.json")


def encoder(folder: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "pretrained"))
    from folders import write_folder

    write_folder(folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))


def helm(folder: Path) -> None:
    stats = [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": 1.0, "mean": 1.0}]
    entries = [{"instance_id": f"id{at}", "train_trial_index": 0, "stats": stats} for at in range(2)]
    (folder / "run_spec.json").write_text(json.dumps({"name": "run", "adapter_spec": {"model": "org/m"}}))
    (folder / "per_instance_stats.json").write_text(json.dumps(entries))


def inspect(folder: Path) -> None:
    samples = [{"id": at, "epoch": 1, "scores": {"judge": {"value": one}}} for at, one in enumerate("CICN")]
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "qa", "model": "org/m", "created": "2026-01-01"},
        "samples": samples,
    }
    (folder / "a.json").write_text(json.dumps(log))


def code_samples(folder: Path) -> None:
    tasks = {f"HumanEval/{at}": [{"base_status": "pass", "plus_status": "fail", "solution": ""}] for at in range(2)}
    (folder / "m_eval_results.json").write_text(json.dumps({"date": "", "hash": "0", "eval": tasks}))


def prepared_dataset(folder: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tasks"))
    from tfds_files import write_dataset

    records = [{"sentence": f"film {at}", "label": at % 2, "idx": at} for at in range(12)]
    write_dataset(folder, "films", {"train": records, "validation": records[:4], "test": records[:4]})


def from_prepared(folder: Path) -> Any:
    return tasks.from_tfds("films", data_dir=str(folder), min_count=1)


@functools.cache
def digits() -> tasks.Task:
    return sample_split(tasks.load("digits"), "train", 20, seed=0)


def run_folder(folder: Path) -> None:
    directory = open_run(str(folder / "run"), FLAGS, digits())
    stage(directory, "fit", "fit", lambda: 1, lambda _, at: (at / "items.csv").write_text("item_id\n"))


def reopened(folder: Path) -> None:
    (folder / "run" / ".lock").unlink()  # which this process holds
    stage(open_run(str(folder / "run"), FLAGS, digits()), "fit", "fit", pytest.fail, pytest.fail)


FLAGS = {"task": "digits", "seed": 0, "network": "mlp"}
ITEMS = "item_id,model,discrimination,difficulty,guessing,upper\n" + "".join(
    f"i{at},4pl,1.5,{at}.5,0.1,0.9\n" for at in range(3)
)
GRADED = (
    "item_id,model,grades,discrimination,threshold_1,threshold_2\na,graded,0|1|2,1.2,-1,1\nb,graded,0|1|2,0.8,0,2\n"
)
MEMBERS = (
    "subject_id,seed,subset_size,corruption_rate,learning_rate,width,network\n"
    "model_0000,1,100,0.1,0.005,32,mlp\nmodel_0001,2,50,0.0,0.005,32,mlp\n"
)
PEOPLE = "subject_id,age,place,score\na,30,x,1.5\nb,41.5,y,2\nc,50,x,40\nd,20,y,0\n"
FOUR = np.array(list("abcd"))
KEY = "item_id,key,date,x,y\np,A,2024-01-05,1,0.5\nq,B,2024-03-01,2,-1\nr,A,2023-12-31,0.5,4\n"
THREE = np.array(list("pqr"))
RESPONSES = irtjax.ResponseMatrix(np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]], np.int8), FOUR, THREE)
CHOSEN = np.array([["A", "B", "A"], ["B", "B", ""], ["A", "A", "B"], ["B", "B", "A"]])
TEXTS = "item_id,text,label\na,good film,yes\nb,bad plot,no\n"
KINDS = [
    Kind("fit.npz", save_fit, irtjax.load_fit),
    Kind("r.shards/shards.json", save_shards, lambda at: irtjax.open_responses(at / "r.shards").read()),
    Kind("r.shards/*.npy", save_shards, lambda at: irtjax.open_responses(at / "r.shards").read()),
    Kind("config.json", encoder, read_pretrained),
    Kind("model.safetensors", encoder, read_pretrained),
    Kind("vocab.txt", encoder, lambda at: Pieces(read_pretrained(at)).numbers(["a film"], 9)),
    Kind("tokenizer_config.json", encoder, lambda at: Pieces(read_pretrained(at)).numbers(["a film"], 9)),
    Kind("c.json", save_curriculum, lambda at: Curriculum.load(at / "c.json")),
    Kind("a.json", inspect, lambda at: irtjax.read_responses(at / "a.json")),
    Kind("per_instance_stats.json", helm, lambda at: irtjax.read_responses(at / "per_instance_stats.json")),
    Kind("run_spec.json", helm, lambda at: irtjax.read_responses(at / "per_instance_stats.json")),
    Kind("m_eval_results.json", code_samples, lambda at: irtjax.read_responses(at / "m_eval_results.json")),
    text(
        "n_results.jsonl",
        '{"task_id": "a", "passed": true}\n{"task_id": "b", "passed": false}\n',
        irtjax.read_responses,
    ),
    text(
        "samples_qa.jsonl",
        '{"doc_id": 0, "acc": 1.0, "filter": "none"}\n{"doc_id": 1, "acc": 0.0, "filter": "none"}\n',
        irtjax.read_responses,
    ),
    text("r.jsonlines", '{"subject_id": "m", "responses": {"a": 1, "b": 0}}\n', irtjax.read_responses),
    Kind("films/1.0.0/dataset_info.json", prepared_dataset, from_prepared),
    Kind("films/1.0.0/features.json", prepared_dataset, from_prepared),
    Kind("run/config.json", run_folder, reopened),
    Kind("run/fit/stage.json", run_folder, reopened),
    text("members.csv", MEMBERS, read_members),
    text("answers.csv", "subject,a,b\n1,yes,no\n2,no,na\n", read_annotations),
    text("labels.csv", "annotator,item_id,label\n1,a,yes\n2,a,no\n1,b,no\n", read_annotations),
    text("items.csv", ITEMS, item_bank),
    text("known.csv", ITEMS, known_test),
    text("graded.csv", GRADED, graded_bank),
    text("graded_known.csv", GRADED, known_test),
    text("groups.csv", "item_id,group\na,x\nb,y\n", lambda at: column_of(str(at), "group", np.array(["a", "b"]))),
    text("quotas.csv", "category,share\nx,0.5\ny,0.5\n", lambda at: quotas_of(str(at))),
    text("texts.csv", TEXTS, read_item_texts),
    text("examples.csv", TEXTS, lambda at: read_examples(at, 1, ("no", "yes"))),
    text("table.csv", "item_id,x,y\na,1,0.5\nb,2,na\n", read_file),
    text("table.jsonl", '{"item_id": "a", "x": 1, "y": 0.5}\n{"item_id": "b", "x": 2, "y": null}\n', read_file),
    text("scores.csv", PEOPLE, lambda at: scores_of(str(at), RESPONSES)),
    text("abilities.csv", PEOPLE.replace("score", "ability"), lambda at: abilities_of(str(at))),
    text("same_texts.csv", TEXTS, lambda at: texts_of(str(at), pd.Index(["a", "b"]))),
    text("covariates.csv", PEOPLE, lambda at: as_predictors(flagged_columns(f"{at}:age,place", "covariates"), FOUR)),
    text("people.csv", PEOPLE, lambda at: membership(flagged_column(f"{at}:place"), FOUR)),
    text("features.csv", KEY, lambda at: item_features(flagged_columns(f"{at}:x,y", "features"), THREE)),
    text("dates.csv", KEY, lambda at: _dates(flagged_column(f"{at}:date", "dates", text=True), THREE, "dates", "item")),
    text("key.csv", KEY, lambda at: read_choices(CHOSEN, flagged_column(f"{at}:key", "key", text=True), FOUR, THREE)),
    text("test_labels.csv", "idx,label\n0,1\n1,0\n", lambda at: sst2.read_test_labels(at, [0, 1])),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A valid file of each kind, by its name, in a folder of its own."""
    made = {}

    def folder(kind):
        if kind.name not in made:
            at = tmp_path_factory.mktemp("odd")
            kind.write(at)
            kind.read(at)  # what is not damaged is read
            place = sorted(at.glob(kind.name))[0]
            made[kind.name] = at, place, place.read_bytes()
        return made[kind.name]

    return folder


def read_or_one_line(folders, kind, content):
    at, place, whole = folders(kind)
    place.write_bytes(content)
    try:
        kind.read(at)
    except InputError as error:
        said = str(error).replace(str(at), "")
        assert len(said.splitlines()) == 1
        assert len(said) < LONGEST
        return said
    finally:
        place.write_bytes(whole)
    return ""


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
@settings(max_examples=80)
@given(data=st.data())
def test_a_damaged_file_is_read_or_one_line(folders, kind, data):
    whole = folders(kind)[2]
    read_or_one_line(folders, kind, data.draw(damaged(whole) | replaced(whole)))


FOUND = [  # by longer searches
    ("r.shards/*.npy", rb"\(\d+,\)", b"(2,(", "not an array of NumPy"),
    ("vocab.txt", rb"(?s)\[UNK\].*", b"[CLS]\\n[SEP]", "its vocabulary does not split all texts"),
    ("per_instance_stats.json", rb'"count": 1(.*?), "mean": 1\.0', rb'"count": 1' + b"0" * 400 + rb"\1", "entry 1, "),
    ("graded.csv", rb"0\|1\|2", b"1e400", "grades '1e400', expected two or more"),
    ("graded.csv", rb"0\|1\|2", b"0|nan|1e400", ""),
    ("table.jsonl", b'"x"', b'"\\\\ud800"', "line 1 has half of a surrogate pair, which is no text"),
    ("table.jsonl", b'"b"', b'"\\\\uDC00b"', "line 2 has half of a surrogate pair, which is no text"),
    ("table.jsonl", b'"b"', b'"\\\\ud83d\\\\ude00"', ""),
]


@pytest.mark.parametrize(("name", "old", "new", "said"), FOUND)
def test_what_was_found_is_one_line(folders, name, old, new, said):
    kind = next(kind for kind in KINDS if kind.name == name)
    whole = folders(kind)[2]
    content = re.sub(old, new, whole, count=1)
    assert content != whole
    assert said in read_or_one_line(folders, kind, content)
