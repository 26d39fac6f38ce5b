"""Items as text: which columns are read, and what is said of those that lack something."""

import numpy as np
import pytest

from irtjax import InputError
from irtjax.tasks.item_texts import read_item_texts

PAIRS = "pair_id,premise,hypothesis,label,words\n1,a man , he sleeps,no,3\n2,two dogs,they run,yes,4\n"


@pytest.fixture
def file(tmp_path):
    def write(text):
        (tmp_path / "items.csv").write_text(text)
        return str(tmp_path / "items.csv")

    return write


def test_pairs_of_sentences_and_further_columns(file):
    items = read_item_texts(file(PAIRS), columns=["words", "label"])
    assert items.ids.tolist() == ["1", "2"]
    assert items.sentences == (["a man ", "two dogs"], [" he sleeps", "they run"])
    assert items.shown().tolist() == ["a man / he sleeps", "two dogs / they run"]
    assert items.table.words.tolist() == [3, 4]
    assert items.table.label.tolist() == ["no", "yes"]
    last = items.choose(np.array([1]))
    assert (last.ids.tolist(), last.shown().tolist()) == (["2"], ["two dogs / they run"])
    assert last.table.label.tolist() == ["yes"]


def test_columns_that_are_named(file):
    items = read_item_texts(file("item_id,question,text\na,what?,not this\n"), texts=["question"])
    assert items.sentences == (["what?"],)


def test_numbers_stay_text(file):
    items = read_item_texts(file("item_id,text\n007,12\nNA,1.50\nb,None\n"))
    assert items.ids.tolist() == ["007", "NA", "b"]
    assert items.sentences == (["12", "1.50", "None"],)


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("id,text\na,b\n", {}, "no column of ids, expected one of item_id"),
        ("item_id,about\na,b\n", {}, "no column text, nor premise and hypothesis"),
        ("item_id,text\na,b\n", {"texts": ["question"]}, "no column question"),
        ("item_id,text\na,b\n", {"columns": ["length"]}, "no column length"),
        ("item_id,a,b,c\n1,x,y,z\n", {"texts": ["a", "b", "c"]}, "3 columns of text, expected one or two"),
        ("item_id,text\n", {}, "no items"),
        ("item_id,text\na,b\nc, \n", {}, "item c: no text; leave the item out"),
        ("item_id,text,length\na,b,1\nc,d,\n", {"columns": ["length"]}, "item c: no length"),
        (
            "item_id,text,length\na,b,1\nc,d,inf\n",
            {"columns": ["length"]},
            "item c: no length, or one that is not finite",
        ),
        ("item_id,text\na,b\na,c\n", {}, "item_id 'a' is there twice, in lines 2 and 3"),
    ],
)
def test_what_is_missing_is_named(file, text, columns, message):
    with pytest.raises(InputError, match=message):
        read_item_texts(file(text), **columns)
