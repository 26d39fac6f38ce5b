"""Long tables with names of their own: read where they are unambiguous, or as the caller says, and else refused."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from readers import plain, refusal
from simulation import simulate

import irtjax
from irtjax import InputError, open_responses, read_responses, write_responses, write_shards
from irtjax.responses.convert import as_responses

EXPECTED = (["m1", "m2"], ["q1", "q2", "q3"], [[1, 0, -1], [0, 1, 1]])
OTHERS = {"subject": "model", "item": "instance_id", "response": "resolved"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("columns")


def read_each_way(folder, text, columns=None):
    """The same table as CSV, as Parquet (read and opened), and as pandas reads it."""
    (folder / "r.csv").write_text(text, encoding="utf-8")
    table = pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=["NA", ""])
    table.to_parquet(folder / "r.parquet")
    return [
        read_responses(folder / "r.csv", columns=columns),
        read_responses(folder / "r.parquet", columns=columns),
        open_responses(folder / "r.parquet", columns=columns),
        as_responses(table, columns=columns),
    ]


READ = {
    "model, instance_id, resolved": "model,instance_id,resolved\nm1,q1,1\nm1,q2,0\nm2,q1,0\nm2,q2,1\nm2,q3,1\n",
    "names of nothing": "a,b,c\nm1,q1,1\nm1,q2,0\nm2,q1,0\nm2,q2,1\nm2,q3,1\n",
    "the response first": "correct,who,what\n1,m1,q1\n0,m1,q2\n0,m2,q1\n1,m2,q2\n1,m2,q3\n",
    "the item first": "questionId,y,LLM model\nq1,1,m1\nq2,0,m1\nq1,0,m2\nq2,1,m2\nq3,1,m2\n",
    "the item first, of one name": "problem,by,y\nq1,m1,1\nq2,m1,0\nq1,m2,0\nq2,m2,1\nq3,m2,1\n",
    "of R": '"","person","item","resp"\n"1","m1","q1",TRUE\n"2","m1","q2",FALSE\n"3","m2","q1",FALSE\n'
    '"4","m2","q2",TRUE\n"5","m1","q3",NA\n"6","m2","q3",TRUE\n',
    "of pandas": ",student,question,correct\n0,m1,q1,1.0\n1,m1,q2,0.0\n2,m2,q1,0.0\n3,m2,q2,1.0\n4,m2,q3,1.0\n"
    "9,m1,q3,\n",
    "booleans": "model,task,passed\nm1,q1,True\nm1,q2,False\nm2,q1,False\nm2,q2,True\nm2,q3,True\n",
}


@pytest.mark.parametrize("case", READ)
def test_unambiguous_columns_are_found(folder, case):
    for found in read_each_way(folder, READ[case]):
        assert plain(found.read()) == EXPECTED


def test_ids_may_be_numbers(folder):
    rows = [f"{at},{subject},{item},{(subject + item) % 2}" for at, (subject, item) in enumerate(np.ndindex(4, 5))]
    for found in read_each_way(folder, "\n".join([",user,question,correct", *rows])):
        found = found.read()
        assert (found.subject_ids.tolist(), found.item_ids.tolist()) == (list("0123"), list("01234"))
        assert found.values.tolist() == [[(subject + item) % 2 for item in range(5)] for subject in range(4)]


def test_columns_are_read_as_the_caller_says(folder):
    text = "run,resolved,instance_id,model,cost\n1,1,q1,m1,.5\n1,0,q2,m1,.5\n1,0,q1,m2,.5\n1,1,q2,m2,1\n1,1,q3,m2,1\n"
    for found in read_each_way(folder, text, OTHERS):
        assert plain(found.read()) == EXPECTED
    for turned in read_each_way(folder, text, OTHERS | {"subject": "instance_id", "item": "model"}):
        turned = turned.read()
        assert (turned.item_ids.tolist(), turned.values.T.tolist()) == (EXPECTED[0], EXPECTED[2])
    usual = "subject_id,item_id,response,other\nm1,q1,1,x\nm1,q2,0,x\nm2,q1,0,x\nm2,q2,1,x\nm2,q3,1,x\n"
    for found in read_each_way(folder, usual, {"response": "response"}):
        assert plain(found.read()) == EXPECTED


def test_a_matrix_stays_a_matrix(folder):
    for text in ("id,i1,i2\na,1,0\nb,0,\nc,1,1\n", "id,i1,i2,i3\n0,1,0,1\n1,0,1,1\n2,0,0,1\n"):
        (folder / "r.csv").write_text(text)
        assert read_responses(folder / "r.csv").item_ids.tolist() == text.split("\n")[0].split(",")[1:]
    (folder / "r.csv").write_text("id,i1,i2\na,1,0\nb,0,x\nc,1,y\n")  # two wrong cells do not make ids of responses
    assert refusal(read_responses, folder / "r.csv").startswith("line 3 (subject 'b'), column 3 (item 'i2'): 'x' is")


def test_matrices_of_r_are_read(folder):
    (folder / "r.csv").write_text('"","i1","i2"\n"ann",TRUE,NA\n"bob",FALSE,TRUE\n')
    assert plain(read_responses(folder / "r.csv")) == (["ann", "bob"], ["i1", "i2"], [[1, -1], [0, 1]])


AMBIGUOUS = {
    "a column more": "model,instance_id,resolved,cost\nm1,q1,1,.5\nm1,q2,0,.5\n",
    "no responses": "model,instance_id,answer\nm1,q1,A\nm1,q2,B\n",
    "two of responses": "model,instance_id,resolved,applied\nm1,q1,1,1\nm1,q2,0,1\n",
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_others_are_refused_with_the_names_that_are_expected(folder, case):
    text = AMBIGUOUS[case]
    (folder / "r.csv").write_text(text)
    table = pd.read_csv(io.StringIO(text))
    table.to_parquet(folder / "r.parquet")
    for read, source in (
        (read_responses, folder / "r.csv"), (read_responses, folder / "r.parquet"), (as_responses, table)
    ):  # fmt: skip
        with pytest.raises(InputError) as error:
            read(source)
        message = str(error.value)
        assert "'q1' is not a response" in message
        assert "has the columns subject_id, item_id, response, or `columns` says which of its own they are" in message
        assert "it has 'model', 'instance_id'," in message


MAPPED_WRONG = {
    "another role": ({"person": "model"}, "`columns` names a column for 'person', expected subject, item, response"),
    "not there": (OTHERS | {"item": "id"}, "no column 'id' for the item: it has 'model', 'instance_id', 'resolved'"),
    "twice": (OTHERS | {"item": "model"}, "`columns` has 'model' twice"),
    "not all": ({"subject": "model"}, "there is no column 'item_id' for the item"),
}


@pytest.mark.parametrize("case", MAPPED_WRONG)
def test_columns_that_are_named_wrongly_are_refused(folder, case):
    columns, message = MAPPED_WRONG[case]
    with pytest.raises(InputError, match=message):
        read_each_way(folder, READ["model, instance_id, resolved"], columns)


def test_files_that_are_no_tables_have_no_columns(folder):
    responses = irtjax.ResponseMatrix([[1, 0], [0, 1]], ["a", "b"], ["i", "j"])
    write_responses(responses, folder / "r.npz")
    write_shards([(responses.values, ["i", "j"])], ["a", "b"], folder / "shards")
    (folder / "r.jsonl").write_text(json.dumps({"subject_id": "a", "responses": {"i": 1}}))
    for name in ("r.npz", "shards", "r.jsonl"):
        for read in (read_responses, open_responses):
            with pytest.raises(InputError, match=r"is no table \(.csv or .parquet\).*leave out `columns`"):
                read(folder / name, columns=OTHERS)
    with pytest.raises(InputError, match="responses of type list have no columns with names"):
        as_responses([[1, 0], [0, 1]], columns=OTHERS)


def test_fits_scores_and_comparisons_take_columns():
    values = simulate(60, 8)[0].values
    cells = [(f"m{j}", f"q{i}", values[j, i], 1.0) for j, i in np.ndindex(values.shape)]
    table = pd.DataFrame(cells, columns=["model", "instance_id", "resolved", "cost"])
    matrix = irtjax.ResponseMatrix(values, [f"m{j}" for j in range(60)], [f"q{i}" for i in range(8)])
    fit = irtjax.fit(table, "rasch", columns=OTHERS)
    assert fit.responses == matrix
    pd.testing.assert_frame_equal(irtjax.score(fit, table, columns=OTHERS), irtjax.score(fit, matrix))
    found = irtjax.compare(table, ["rasch"], by=["cells"], folds=2, columns=OTHERS)
    expected = irtjax.compare(matrix, ["rasch"], by=["cells"], folds=2)
    pd.testing.assert_frame_equal(found.table.drop(columns="seconds"), expected.table.drop(columns="seconds"))


ids = st.lists(st.text("ab1", min_size=1, max_size=3), min_size=2, max_size=4, unique=True)


@given(ids, ids, st.integers(0, 2**16), st.booleans(), st.permutations([0, 1, 2]))
def test_what_is_guessed_is_right_or_refused(folder, subjects, items, seed, numbered, order):
    """Whatever the ids look like, and in whatever order the columns come: never another matrix."""
    rng = np.random.default_rng(seed)
    values = {(subject, item): rng.integers(2) for subject in subjects for item in items}
    rows = [[(subject, item, str(value))[at] for at in order] for (subject, item), value in values.items()]
    lines = [["model", "question", "correct"][at] for at in order], *rows
    if numbered:
        lines = [[str(at - 1) if at else "", *line] for at, line in enumerate(lines)]
    (folder / "g.csv").write_text("\n".join(map(",".join, lines)) + "\n")
    try:
        found = read_responses(folder / "g.csv")
    except InputError:
        return
    shown = {
        (subject, item): found.values[j, i]
        for j, subject in enumerate(found.subject_ids.tolist())
        for i, item in enumerate(found.item_ids.tolist())
    }
    assert shown == values
