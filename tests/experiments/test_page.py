"""Reports as pages: what report.md says, complete in one file, harmless whatever an id says; looked at by a browser."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from binaries import run
from matplotlib.figure import Figure
from PIL import Image
from simulation import simulate

import irtjax
from experiments.reports import document, markdown
from experiments.reports.page import page
from experiments.reports.render import render
from irtjax.plots.style import save_figure

AWKWARD = [
    "<script>document.title = 'gone'</script>", "<img src=x onerror=alert(1)>", "&lt;b&gt;", "a|b", "[x](http://a.b)",
    "<http://a.b>", "![x](http://a.b/c.png)", "`code`", "*bold*", "</td></table>", "'\"", "$title ${body} $$",
]  # fmt: skip


class Read(HTMLParser):
    """The tags, attributes and cells of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.cells, self._inside = [], [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._inside = tag == "td" or (self._inside and tag == "code")
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        self._inside = self._inside and tag != "td"

    def handle_data(self, data):
        if self._inside:
            self.cells[-1] += data


def assert_complete(text):
    """One script and one style, both our own; pictures within; nothing to fetch, and nothing that runs but them."""
    read = Read(text)
    assert read.tags.count("script") == read.tags.count("style") == 1
    assert not {"iframe", "object", "a", "form"} & set(read.tags)
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    sources = [value for name, value in read.attributes if name in ("src", "href")]
    assert all(value.startswith("data:") for value in sources)
    assert read.tags.count("img") == sum(value.startswith("data:image/png;base64,") for value in sources)
    outside = "".join(f"{name}={value}" for name, value in read.attributes if name not in ("src", "alt"))
    assert not re.search("https?:", outside)
    return read


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of a command whose items have awkward names."""
    folder = tmp_path_factory.mktemp("page")
    responses = simulate(80, len(AWKWARD) + 4)[0]
    for name, rows in (("one", slice(0, 40)), ("other", slice(40, 80))):
        ids = [*AWKWARD, *responses.item_ids[len(AWKWARD) :]]
        part = irtjax.ResponseMatrix(responses.values[rows], responses.subject_ids[rows], ids)
        irtjax.write_responses(part, folder / f"{name}.npz")
    files = ",".join(str(folder / f"{name}.npz") for name in ("one", "other"))
    result = run(
        f"--responses={files}", f"--output_dir={folder / 'out'}", "--shown=20", module="experiments.compare_difficulty"
    )
    assert result.returncode == 0, result.stderr
    assert "report.html, report.md" in result.stdout
    return folder / "out" / "report.html"


def test_a_page_is_complete_and_ids_are_only_text(report):
    read = assert_complete(report.read_text(encoding="utf-8"))
    assert len(set(AWKWARD) & set(read.cells)) > 9  # those that the sources do not agree on
    assert read.tags.count("img") == 1


def test_a_page_says_what_the_markdown_says(tmp_path):
    figure = Figure()
    figure.subplots().plot([0, 1])
    (tmp_path / "a b").mkdir()
    save_figure(figure, tmp_path / "a b" / "1.png")
    rows = [[markdown.inline(name), markdown.code_cell(name), number] for number, name in enumerate(AWKWARD)]
    parts = ["# A & <b>", markdown.table(["item", "code", "number"], rows), "![one](a%20b/1.png)", "**yes**"]
    made, _ = render("_made", {"flags": {"items": AWKWARD[0]}, "versions": {"irtjax": "1"}})
    document.publish("\n\n".join([*parts, made]), tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text == page((tmp_path / "report.md").read_text(encoding="utf-8"), tmp_path)
    read = assert_complete(text)
    assert read.cells == [cell for number, name in enumerate(AWKWARD) for cell in (name, name, str(number))]
    assert "<title>A &amp; &lt;b&gt;</title>" in text
    assert "<strong>yes</strong>" in text
    assert "--items=&lt;script&gt;" in text


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def browse(page_file: Path, folder: Path, *flags: str) -> str:
    """What headless Chromium prints of a page; a message on its console is an error."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    command += [f"--user-data-dir={folder / 'profile'}", "--hide-scrollbars", *flags, page_file.as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return result.stdout, [line for line in result.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_shows_it_without_an_error(report, tmp_path, width):
    screen = tmp_path / "screen.html"  # no window of headless Chromium is as narrow as a phone
    screen.write_text(
        f"<body style='margin: 0'><iframe style='border: 0' width={width} height=1500 src='{report.as_uri()}'></iframe>"
    )
    picture = tmp_path / "page.png"
    _, errors = browse(screen, tmp_path, "--window-size=1280,1500", f"--screenshot={picture}")
    assert errors == []
    with Image.open(picture) as image:
        shown = image.convert("L").crop((0, 0, width, 1500))
        assert len(shown.getcolors()) > 20, "not blank"
        margin = shown.crop((width - 10, 0, width, 1500))
        assert margin.getcolors() == [(15000, 255)], "nothing beyond the text"


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_a_click_sorts_and_nothing_else_runs(tmp_path):
    rows = [["b", "1,000"], ["a", "-2.5 ± 0.1"], ["<script>", ""], ["c", "30% (29 to 31)"]]
    document.publish("# T\n\n" + markdown.table(["id", "n"], [[markdown.inline(a), b] for a, b in rows]), tmp_path)
    clicks = """<script>
    const [id, n] = document.querySelectorAll("th");
    const order = () => [...document.querySelectorAll("td:first-child")].map(cell => cell.textContent).join(" ");
    const seen = [];
    for (const head of [n, n, id]) { head.click(); seen.push(order()); }
    const wider = document.documentElement.scrollWidth > innerWidth;
    document.title = JSON.stringify([...seen, n.className, id.className, wider]);
    fetch("http://127.0.0.1:9/").catch(() => {});
    </script></body>"""
    file = tmp_path / "clicked.html"
    file.write_text((tmp_path / "report.html").read_text(encoding="utf-8").replace("</body>", clicks), encoding="utf-8")
    dom, errors = browse(file, tmp_path, "--dump-dom", "--window-size=500,800")
    expected = '["a c b &lt;script&gt;","b c a &lt;script&gt;","&lt;script&gt; a b c","number","",false]'
    assert f"<title>{expected}</title>" in dom
    assert errors, "the page's own rules refuse the network"


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_rows_are_of_one_line_on_a_phone_but_for_long_texts(tmp_path):
    head = ["model", "log-loss", "log-loss above the lowest", "folds converged", "text"]
    rows = [["2PL", "0.5308 ± 0.0102", "0 (lowest)", "all of them", "short"], ["1PL", "0.5431", "0.0123", "some", "a"]]
    long = ["3PL", "0.5309", "0.0001", "all", "a text of many words, too long for a line of a narrow screen " * 2]
    document.publish("# T\n\n" + markdown.table(head, [*rows, long]), tmp_path)
    measure = """<script>
    const height = row => row.cells[0].clientHeight;
    const [head, one, other, long] = [...document.querySelectorAll("tr")].map(height);
    const align = getComputedStyle(document.querySelector("th")).verticalAlign;
    const numeric = document.querySelectorAll("th.number").length;
    document.title = JSON.stringify([one === other, long > 2 * one, align, numeric]);
    </script></body>"""
    file = tmp_path / "measured.html"
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    file.write_text(text.replace("</body>", measure), encoding="utf-8")
    dom, errors = browse(file, tmp_path, "--dump-dom", "--window-size=500,800")
    assert errors == []
    assert '<title>[true,true,"bottom",2]</title>' in dom
