"""Small files that would fill the memory are refused by what they say of themselves."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import irtjax
from irtjax import InputError
from irtjax.storage import memory
from irtjax.tasks.table_files import read_file

ROWS = 100_000
FREE = 50_000


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: FREE)


def test_free_memory_is_some_and_that_of_a_container_where_it_has_less(monkeypatch, tmp_path):
    assert 2**20 < memory.free_memory() < 2**50
    monkeypatch.setattr(memory, "OF_CONTAINER", tmp_path)
    for name, text in (("max", "max\n"), ("current", "70\n"), ("stat", "anon 50\nactive_file 5\ninactive_file 15\n")):
        (tmp_path / f"memory.{name}").write_text(text)
    assert memory.free_memory() > 2**20  # no limit
    (tmp_path / "memory.max").write_text("100\n")
    assert memory.free_memory() == 50  # of what is taken, 20 are copies of files
    (tmp_path / "memory.stat").unlink()
    assert memory.free_memory() > 2**20


def test_archives_that_would_fill_the_memory(little_memory, tmp_path):
    path = tmp_path / "bomb.npz"
    ids = np.array([f"s{j}" for j in range(ROWS // 10)]), np.arange(10).astype(str)
    np.savez_compressed(path, responses=np.ones((ROWS // 10, 10), np.int8), subject_ids=ids[0], item_ids=ids[1])
    with pytest.raises(InputError, match=r"bomb\.npz: takes 0\.0 GiB of memory, and .* give a smaller file"):
        irtjax.read_responses(path)


TABLES = {
    "a matrix": {"subject_id": pa.array(range(ROWS)).cast(pa.string()), "i": pa.array(np.ones(ROWS, np.int8))},
    "one row per response": {
        "subject_id": pa.array(["s"] * ROWS),
        "item_id": pa.array(["i"] * ROWS),
        "response": pa.array(np.ones(ROWS, np.int8)),
    },
    "rows of items": {"item_id": pa.array(["i"] * ROWS), "s": pa.array(np.ones(ROWS, np.int8))},
    "no ids": {"a": pa.array(np.ones(ROWS, np.int64)), "b": pa.array(np.ones(ROWS, np.int64))},
}


@pytest.mark.parametrize("case", TABLES)
def test_tables_that_would_fill_the_memory(case, little_memory, tmp_path):
    path = tmp_path / "bomb.parquet"
    pyarrow.parquet.write_table(pa.table(TABLES[case]), path, compression="zstd")
    for read in (irtjax.read_responses, irtjax.open_responses, read_file):
        with pytest.raises(InputError, match=r"bomb\.parquet: takes .* GiB of memory, and"):
            read(path)


def test_a_part_of_a_table_may_fit_where_the_whole_does_not(little_memory, tmp_path):
    """Row groups are read one at a time."""
    path = tmp_path / "large.parquet"
    items = [f"i{at}" for at in range(2_000)]
    values = np.random.default_rng(0).integers(0, 2, (2_000, 40)).astype(np.int8)
    table = pa.table({"item_id": items} | {f"s{j}": values[:, j] for j in range(40)})
    assert table.nbytes > FREE
    pyarrow.parquet.write_table(table, path, row_group_size=200)
    opened = irtjax.open_responses(path)
    np.testing.assert_array_equal(opened.values[:, 200:400], values[200:400].T)


@pytest.mark.parametrize("kept_as", [pa.string(), pa.dictionary(pa.int32(), pa.string())], ids=["text", "categories"])
def test_texts_that_a_file_has_once_and_the_memory_many_times(kept_as, little_memory, tmp_path):
    """Also beside others; texts of which each occurs once are what their pages say."""
    path, number, long = tmp_path / "bomb.parquet", 1000, "x" * 100
    for texts, fits in (([long] * number, False), ([f"{at:05d}" for at in range(number)], True)):
        for name in ("text", "label"):
            other = [f"{at % 2}" for at in range(number)]
            columns = {"text": texts, "label": other} if name == "text" else {"text": other, "label": texts}
            table = pa.table({key: pa.array(value).cast(kept_as) for key, value in columns.items()})
            pyarrow.parquet.write_table(table, path, row_group_size=400)
            assert path.stat().st_size < FREE
            if fits:
                assert len(read_file(path).cells) == number
            else:
                with pytest.raises(InputError, match=r"takes 0\.0 GiB of memory, and"):
                    read_file(path)
    assert memory.parquet_bytes(path, pyarrow.parquet.ParquetFile(path), ["label"], group=2) < FREE
