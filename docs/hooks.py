"""Makes a page of each notebook under docs/: its text, its code, and the outputs that it was saved with.

A hook of mkdocs. A notebook is JSON, so that no further package is needed, and nothing is executed here.
"""

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds guide/notebooks/NAME.md for guide/notebooks/NAME.ipynb."""
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            notebook = json.loads(Path(file.abs_src_path).read_text())
            name = file.src_uri.rsplit("/", 1)[-1]
            note = f'*A notebook, with its outputs as it was last run: <a href="{name}" download>{name}</a>.*'
            first, *others = _cells(notebook)
            page = "\n\n".join([first, note, *others])
            files.append(File.generated(config, file.src_uri.removesuffix(".ipynb") + ".md", content=page))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to notebooks lead to their pages; in the repository they lead to the notebooks themselves."""
    return re.sub(r"\]\(([\w/.]*/)?(\w+)\.ipynb\)", r"](\1\2.md)", markdown)


def _cells(notebook: dict[str, Any]) -> list[str]:
    blocks = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            blocks.append(source)
        elif source:
            blocks.append(f"```python\n{source}\n```")
            blocks.extend(map(_output, cell["outputs"]))
    return blocks


def _output(output: dict[str, Any]) -> str:
    """A picture or a table where there is one, else text; what went to stderr is left out."""
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="output" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    if "text/html" in data:
        return "".join(data["text/html"]).replace("\n\n", "\n")
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```" if text.strip() and output.get("name") != "stderr" else ""
