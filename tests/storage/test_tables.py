"""Tables as people write them, and as spreadsheets do."""

import pytest

from irtjax import InputError
from irtjax.storage.tables import read_table

IDS = ["NA", "null", "nan", "None", "007", "1.0", "a,b", 'say "no"', "é"]


def test_ids_stay_text(tmp_path):
    cells = [f'"{item.replace(chr(34), chr(34) * 2)}"' for item in IDS]
    lines = ["item_id,difficulty,label", *(f"{cell},{at}.5,NA" for at, cell in enumerate(cells))]
    for number, text in enumerate(("\n".join(lines), "\r\n".join(lines) + "\r\n\r\n", "\ufeff" + "\n".join(lines))):
        path = tmp_path / f"{number}.csv"
        path.write_text(text, encoding="utf-8", newline="")
        table = read_table(path, "item_id")
        assert list(table.item_id) == IDS
        assert list(table.difficulty) == [at + 0.5 for at in range(len(IDS))]
        assert table.label.isna().all()
        assert list(read_table(path, 0, text=True).difficulty)[:2] == ["0.5", "1.5"]


BAD = {
    "trailing comma": ("item_id,b,b_se\nx,1,2,\ny,3,4,\n", "line 2 has 4 cells, expected 3"),
    "short row": ("item_id,b,b_se\nx,1,2\ny,3\n", "line 3 has 2 cells, expected 3"),
    "two names": ("item_id,b,b\nx,1,2\n", "two columns are called 'b'"),
    "no ids": ("item,b\nx,1\n", "no column item_id"),
    "empty id": ("item_id,b\nx,1\n,2\n", "row 2 below the header has no item_id"),
    "twice": ("item_id,b\nx,1\ny,2\nx,3\n", "item_id 'x' is there twice"),
    "nothing": ("", "is empty"),
    "blank lines": ("\n\n\n", "is empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_named(tmp_path, case):
    text, message = BAD[case]
    path = tmp_path / "items.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_table(path, "item_id")
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert str(error.value).count(str(path)) == 1


@pytest.mark.parametrize("content", [b"item_id,b\n\xff\xfe,1\n", None])
def test_what_is_no_text_is_refused(tmp_path, content):
    path = tmp_path / "items.csv"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        read_table(path, "item_id")
