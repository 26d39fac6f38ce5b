"""The documentation says what is true: commands and flags that exist, links that lead somewhere, notebooks that run."""

import ast
import re
import shlex
import unicodedata
from pathlib import Path

import pytest
from conftest import REPOSITORY

import irtjax

PAGES = [
    path
    for path in (
        *REPOSITORY.glob("*.md"),
        *(REPOSITORY / "docs").rglob("*.md"),
        *(REPOSITORY / "experiments" / "presets").glob("*.flags"),
    )
    if path.name != "CHANGELOG.md"  # what was once
]
NOTEBOOKS = sorted((REPOSITORY / "docs").rglob("*.ipynb"))
COMMAND = re.compile(r"python -m ((?:experiments|benchmarks)\.[a-z_.]+)((?: [^\s`|#]+)*)")


def commands():
    """The modules that pages name, each with the flags that they give it."""
    flags: dict[str, set[str]] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for module, arguments in COMMAND.findall(text):
            flags.setdefault(module.rstrip("."), set()).update(re.findall(r" --(?:no)?([a-z_]+)", arguments))
    return flags


def test_commands_and_their_flags_exist():
    found = commands()
    assert {"experiments.pipeline", "experiments.fit_irt", "benchmarks.crowd"} <= found.keys()
    for module, flags in found.items():
        source = REPOSITORY / Path(*module.split(".")).with_suffix(".py")
        assert source.is_file(), module
        code = source.read_text(encoding="utf-8")
        defined = set(re.findall(r'(?:DEFINE_\w+|define_paths?)\(\s*"(\w+)"', code))
        defined |= {"flagfile"}  # of absl
        defined |= {
            "output_dir",
            "guessing",
            "metric",
            "filter",
            "columns",
            "transpose",
            "tensorboard",
            "grades",
            "repeats",
            "sparse",
            "trials",
        } & set(re.findall(r"define_(\w+)\(", code))
        if "define_flags" in code:
            settings, task_flags = (
                (REPOSITORY / "experiments/common" / name).read_text(encoding="utf-8")
                for name in ("settings.py", "task_flags.py")
            )
            defined |= set(re.findall(r"^    (\w+): \w+ = \w+\(", settings, re.MULTILINE))
            defined |= set(re.findall(r'declare_key_flag\("(\w+)"\)', task_flags))
        unknown = {flag for flag in flags if flag not in defined and f"no{flag}" not in defined}
        assert not unknown, f"{module}: {unknown}"


def test_commands_can_be_pasted():
    """Each word is a flag, or a variable of the shell, and the flag files are there."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for arguments in re.findall(r"^python -m experiments\.\w+(.*)$", text, re.MULTILINE):
            assert all(word.startswith(("--", "$")) for word in shlex.split(arguments)), f"{page.name}: {arguments}"
        for path in re.findall(r"--flagfile=([\w/]+\.flags)", text):
            assert (REPOSITORY / path).is_file(), f"{page.name}: {path}"


def test_blocks_of_python_are_python():
    """Text that was filled to the width of a line has once swallowed the statements of a block."""
    for page in PAGES:
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            ast.parse(block, str(page.relative_to(REPOSITORY)))


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(REPOSITORY)}: {target}"


def test_anchors_are_those_of_a_heading_on_github_and_on_the_site():
    """The one keeps each dash and letter of a heading, the other has one dash in a row and no accents.

    Headings that a page has twice, or that hold links, have other anchors there, and none is linked to.
    """
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)#([^)]*)\)", page.read_text(encoding="utf-8")):
            there = (page.parent / target) if target else page
            text = re.sub(r"^```.*?^```", "", there.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
            headings = [re.sub(r"[^\w\s-]", "", line) for line in re.findall(r"^#+ (.*)$", text.lower(), re.MULTILINE)]
            plain = [unicodedata.normalize("NFKD", line).encode("ascii", "ignore").decode() for line in headings]
            named = {line.replace(" ", "-") for line in headings} & {re.sub(r"[-\s]+", "-", line) for line in plain}
            assert anchor in named, f"{page.relative_to(REPOSITORY)}: {target}#{anchor}"


def test_every_page_and_every_public_name_is_listed():
    listed = set(re.findall(r": ([\w/]+\.md)$", (REPOSITORY / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {path.relative_to(REPOSITORY / "docs").as_posix() for path in (REPOSITORY / "docs").rglob("*.md")}
    assert {page for page in pages - listed if not page.endswith("index.md")} == set()
    named = re.findall(r"\[`(\w+)`(?:, `(\w+)`)?\]\[irtjax\.", (REPOSITORY / "docs/reference/index.md").read_text())
    assert set(irtjax.__all__) <= {name for names in named for name in names}


@pytest.mark.slow
def test_the_code_of_the_front_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    names: dict = {"print": lambda *_: None}
    for block in re.findall(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL):
        exec(block.replace("runs/", f"{tmp_path}/"), names)
    assert (tmp_path / "fit" / "wright.png").is_file()
    curriculum, right = names["curriculum"].table(), names["model"].predict(names["x"]) == names["y"]
    assert curriculum.share.iloc[0] < 0.1 < curriculum.share.iloc[-1]
    assert curriculum.ability.iloc[-1] > curriculum.ability.iloc[1] + 2
    assert right.mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    folder = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=folder).execute()
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code" and cell.source)


def test_the_page_of_a_new_item_model_shows_the_code_and_runs():
    page = (REPOSITORY / "docs" / "guide" / "new_item_model.md").read_text()
    shown, snippet = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    files = [REPOSITORY / path for path in re.findall(r"`((?:irtjax|tests)/item_models/\w*binomial\w*\.py)`", page)]
    code = files[0].read_text()
    for line in shown.splitlines():
        name = re.match(r"\s+def \w+\(", line)
        assert (name[0] if name else line) in code
    number = sum(len(path.read_text().splitlines()) for path in files)
    assert f"The three files have {number} lines together" in page
    assert number < 150
    printed = []
    exec(snippet, {"print": printed.append})
    assert "converged" in str(printed[0])


def test_the_network_of_contributing_trains(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (REPOSITORY / "CONTRIBUTING.md").read_text(), re.DOTALL)
    (block,) = (block for block in blocks if "nnx.Module" in block)
    names = {"__name__": "contributing"}
    exec(block, names)
    assert names["trained"].members.accuracy_test.max() > 0.8
    assert names["trained"].members.width.nunique() > 1
    assert "Bilinear" in capsys.readouterr().out
