"""Many files of language models at once: folders of what harnesses write, and several paths."""

import gzip
import json

import numpy as np
import pytest
from readers import plain

import irtjax
from irtjax import InputError, read_responses
from irtjax.responses.formats import names_models

TIME = "2025-01-21T03-44-18.458309"
LATER = "2025-02-01T00-00-00.000001"


def log(folder, task, codes, time=TIME, metric="acc", filter="none", name="samples_{task}_{time}.jsonl"):
    """What the lm-evaluation-harness logs of one model and task."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [{"doc_id": at, "filter": filter, "metrics": [metric], metric: code} for at, code in enumerate(codes)]
    path = folder / name.format(task=task, time=time)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def instances(path, model, codes, name="arc"):
    """Records of every_eval_ever."""
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = {"model_id": model, "evaluation_name": name}
    lines = [keys | {"sample_id": str(at), "evaluation": {"is_correct": bool(code)}} for at, code in enumerate(codes)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def refused(path, **options):
    """The one line that a folder is refused with, without the part of paths that tests do not know."""
    with pytest.raises(InputError) as error:
        read_responses(path, **options)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value).replace(f"{path}", "OUT")


def test_a_folder_is_one_matrix(tmp_path):
    log(tmp_path / "b__model", "arc", [1, 0, 1])
    log(tmp_path / "a__model", "gsm8k", [0, 1], metric="exact_match")
    log(tmp_path / "a__model", "arc", [0, 0])
    (tmp_path / "a__model" / f"results_{TIME}.json").write_text("{}")
    expected = (["a__model", "b__model"], ["arc/0", "arc/1", "gsm8k/0", "gsm8k/1", "arc/2"])
    assert plain(read_responses(tmp_path))[:2] == expected
    assert read_responses(str(tmp_path)).values.tolist() == [[0, 0, 0, 1, -1], [1, 0, -1, -1, 1]]


def test_folders_of_both_harnesses_and_of_py_irt_go_together(tmp_path):
    log(tmp_path / "one", "arc", [1, 0])
    instances(tmp_path / "data" / "arc" / "org" / "two" / "98ea.jsonl", "two", [0, 1])
    (tmp_path / "three.jsonl").write_text('{"subject_id": "three", "responses": {"arc/0": 1}}\n')
    assert plain(read_responses(tmp_path)) == (["two", "one", "three"], ["arc/0", "arc/1"], [[0, 1], [1, 0], [1, -1]])


def test_what_holds_other_records_or_is_hidden_is_left_out(tmp_path):
    log(tmp_path / "model", "arc", [1])
    log(tmp_path / ".cache" / "model", "arc", [0])
    log(tmp_path / "model", "arc", [0], name=".samples_arc.jsonl")
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": 1, "text": "a document"}\n')
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "notes.csv").write_text("a,b\n")
    assert plain(read_responses(tmp_path)) == (["model"], ["arc/0"], [[1]])


def test_the_last_run_of_a_task_counts(tmp_path):
    log(tmp_path / "model", "arc", [1, 1], LATER)
    log(tmp_path / "model", "arc", [0, 0, 0], TIME)
    log(tmp_path / "model", "arc_easy", [0], TIME)
    assert plain(read_responses(tmp_path)) == (["model"], ["arc/0", "arc/1", "arc_easy/0"], [[1, 1, 0]])


def test_the_same_files_may_be_given_twice(tmp_path):
    path = log(tmp_path / "model", "arc", [1, 0])
    assert read_responses([path, path.parent, tmp_path]) == read_responses(path)


def test_several_paths_are_one_matrix(tmp_path):
    paths = [
        log(tmp_path / "x" / "model", "arc", [1]),
        log(tmp_path / "y" / "model", "gsm8k", [0]),
        log(tmp_path / "z" / "other", "arc", [0]).parent,
    ]
    expected = (["model", "other"], ["arc/0", "gsm8k/0"], [[1, 0], [0, -1]])
    assert plain(read_responses(paths)) == plain(read_responses(tuple(map(str, paths)))) == expected


def test_metrics_and_filters_are_chosen_in_every_file_that_has_them(tmp_path):
    path = log(tmp_path / "model", "arc", [1])
    path.write_text('{"doc_id": 0, "acc": 1, "acc_norm": 0}\n')
    log(tmp_path / "model", "gsm8k", [1], metric="exact_match", filter="strict-match")
    assert read_responses(tmp_path, metric="acc_norm").values.tolist() == [[0, 1]]
    assert read_responses(tmp_path, filter="strict-match").values.tolist() == [[1, 1]]


def test_every_entrance_reads_a_folder(tmp_path):
    log(tmp_path / "model", "arc", [1, 0])
    expected = read_responses(tmp_path)
    assert irtjax.open_responses(tmp_path) == expected
    assert irtjax.responses.convert.as_responses(str(tmp_path)) == expected


def test_a_folder_of_shards_stays_one(tmp_path):
    matrix = irtjax.ResponseMatrix([[1, 0]], ["s"], ["a", "b"])
    irtjax.write_shards([(matrix.values, matrix.item_ids)], matrix.subject_ids, tmp_path / "shards")
    log(tmp_path / "shards" / "model", "arc", [1])
    assert read_responses(tmp_path / "shards") == matrix
    with pytest.raises(InputError, match="shards: is read alone: several paths are folders or files of JSON lines"):
        read_responses([tmp_path / "shards", tmp_path])
    with pytest.raises(InputError, match="shards: is no file of a language-model harness: leave out `metric`"):
        irtjax.open_responses(tmp_path / "shards", metric="acc")


def test_which_paths_name_models(tmp_path):
    path = log(tmp_path / "model", "arc", [1])
    (tmp_path / "p.jsonl").write_text('{"subject_id": "s", "responses": {"a": 1}}\n')
    irtjax.write_shards([(np.array([[1]]), ["a"])], ["s"], tmp_path / "shards")
    assert [names_models(one) for one in (path, tmp_path, instances(tmp_path / "e.jsonl", "m", [1]))] == [True] * 3
    assert [names_models(tmp_path / one) for one in ("p.jsonl", "shards", "absent.csv")] == [False] * 3


def twice(folder):
    log(folder / "run_1" / "model", "arc", [1])
    log(folder / "run_2" / "model", "arc", [0], LATER)


def without_time(folder):
    log(folder / "model", "arc", [1])
    log(folder / "model", "arc", [1], name="samples_arc.jsonl")


def of_two_metrics(folder):
    log(folder / "a", "arc", [1])
    log(folder / "b", "arc", [1], metric="acc_norm")


def of_two_filters(folder):
    log(folder / "a", "arc", [1])
    log(folder / "b", "arc", [1], filter="strict-match")


def cut(folder):
    path = log(folder / "a", "arc", [1, 0, 1])
    path.write_text(path.read_text()[:-12])


def of_both_harnesses(folder):
    log(folder / "m", "arc", [1, 0, 1])
    instances(folder / "z.jsonl", "m", [1, 1])


BAD = {
    "nothing": (lambda folder: None, "OUT: no responses in this folder: expected samples_*.jsonl"),
    "a saved fit": (lambda folder: (folder / "items.csv").write_text("item_id\n"), "OUT: no responses in this folder"),
    "two folders of a name": (
        twice,
        f"OUT/run_2/model/samples_arc_{LATER}.jsonl: OUT/run_1/model has task",
    ),
    "no time": (without_time, "samples_arc_2025-01-21T03-44-18.458309.jsonl: one of 2 files of task 'arc' in this"),
    "other metrics": (
        of_two_metrics,
        f"OUT/b/samples_arc_{TIME}.jsonl: task 'arc' would be scored by metric 'acc_",
    ),
    "other filters": (of_two_filters, "would be scored by filter 'strict-match' here, and by 'none' in OUT/a/samples"),
    "a cut file": (cut, f"OUT/a/samples_arc_{TIME}.jsonl: line 3: expected"),
    "twice": (of_both_harnesses, "OUT/z.jsonl: line 1: subject 'm' answers item 'arc/0' a second time, the first of 2"),
    "an empty log": (lambda folder: log(folder / "a", "arc", []), "line 1: expected"),
    "a log of something else": (
        lambda folder: (folder / "samples_x.jsonl").write_text('{"text": 1}\n'),
        "OUT/samples_x.jsonl: line 1: expected",
    ),
    "no JSON": (lambda folder: (folder / "x.jsonl").write_text("{"), "OUT/x.jsonl: line 1: expected"),
    "other text": (
        lambda folder: (folder / "x.jsonl").write_bytes(b'{"doc_id": "\xff"}'),
        "OUT/x.jsonl: line 1 is not UTF-8",
    ),
    "a compressed log": (
        lambda folder: (folder / "samples_x.jsonl.gz").write_bytes(gzip.compress(b"{}")),
        "OUT/samples_x.jsonl.gz: is compressed",
    ),
    "a folder called as a file": (lambda folder: (folder / "x.jsonl").mkdir(), "OUT: no responses in this folder"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_folders_are_named(tmp_path, case):
    make, message = BAD[case]
    make(tmp_path)
    assert message in refused(tmp_path)


def test_other_files_have_no_metric(tmp_path):
    (tmp_path / "r.csv").write_text("id,a\ns,1\n")
    assert refused(tmp_path / "r.csv", metric="acc") == (
        "OUT: is no file of a language-model harness: leave out `metric`"
    )
    (tmp_path / "r.jsonl").write_text('{"subject_id": "s", "responses": {"a": 1}}\n')
    assert refused(tmp_path / "r.jsonl", filter=["x"]) == "`filter`: no file has 'x', nor any other"
