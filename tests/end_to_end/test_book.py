"""The built book, as a reader meets it: opened from disk, with no network.

``make check-book`` runs these after ``make book``. Those in a browser are skipped where none is installed.
"""

import os
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from headless_browser import HeadlessBrowser, Visit, find_browser

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "_build" / "html"
PAGES = sorted(path for path in BUILT.rglob("*.html") if BUILT / "_static" not in path.parents)
SOURCES = ("_config.yml", "_toc.yml", "book/**/*", "notebooks/*.ipynb", "data/*.csv", "frame/**/*.py")
PHONE_WIDTH = 390
# Attributes of HTML elements whose address a browser fetches by itself; a link that a reader follows is none.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
FETCHED |= {"link": "href", "embed": "src", "object": "data", "image": "href", "use": "href", "track": "src"}
STYLE_ADDRESS = re.compile(r"@import\s+(?:url\()?[\"']?([^\"');\s]+)|url\(\s*[\"']?([^\"')]+)")
SCRIPT_ADDRESS = re.compile(
    r"(?:\.src\s*=|\.href\s*=|fetch\(|import\(|importScripts\(|\bfrom|@import\s+url\()\s*[\"'`]((?:https?:)?//[^\"'`]+)"
)

# The first page of the folder only leads on to the first page of the book.
LEADS_ON = re.compile(r"<meta http-equiv=\"refresh\" content=\"0; url=([^\"]+)\"", re.IGNORECASE)
READ_PAGES = [path for path in PAGES if not LEADS_ON.search(path.read_text(encoding="utf-8"))]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not PAGES, reason="there is no built book: run `make book` first"),
]


def _name(page: Path) -> str:
    return page.relative_to(BUILT).as_posix()


every_page = pytest.mark.parametrize("page", PAGES, ids=_name)
every_read_page = pytest.mark.parametrize("page", READ_PAGES, ids=_name)


class Page(HTMLParser):
    """What the checks need of one HTML file: fetched addresses, links, anchors, pictures, styles."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.pictures: list[dict[str, str | None]] = []
        self.drawings: list[dict[str, str | None]] = []
        self.styles: list[str] = []
        self._open = ""
        text = path.read_text(encoding="utf-8")
        self.links += LEADS_ON.findall(text)
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self._open = tag
        self.anchors |= {value for name in ("id", "name") if (value := attributes.get(name))}
        if attributes.get("style"):
            self.styles.append(attributes["style"])
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag == "img":
            self.pictures.append(attributes)
        icon = attributes.get("aria-hidden") or (attributes.get("class") or "").startswith("svg-inline")
        if tag == "svg" and not icon:
            self.drawings.append(attributes)
        for name in (FETCHED.get(tag), "srcset", "poster", "background"):
            if name and attributes.get(name):
                self.fetched.append(attributes[name])

    def handle_data(self, data: str) -> None:
        if self._open == "style":
            self.styles.append(data)


@cache
def parsed_page(path: Path) -> Page:
    return Page(path)


def is_outside(address: str) -> bool:
    return address.startswith(("http:", "https:", "//", "ftp:"))


def local_file(page: Path, address: str) -> Path:
    path = unquote(urlsplit(address).path)
    return page if not path else (page.parent / path).resolve()


def style_addresses(text: str) -> list[str]:
    return [first or second for first, second in STYLE_ADDRESS.findall(text)]


def outside_files(folder: Path) -> list[str]:
    """List what the files of a built book would fetch from elsewhere, without running them."""
    found = []
    for path in sorted(folder.rglob("*")):
        match path.suffix:
            case ".html":
                page = parsed_page(path)
                addresses = page.fetched + [a for style in page.styles for a in style_addresses(style)]
                addresses += SCRIPT_ADDRESS.findall(path.read_text(encoding="utf-8"))
            case ".css" | ".svg":
                addresses = style_addresses(path.read_text(encoding="utf-8"))
            case ".js" | ".mjs":
                addresses = SCRIPT_ADDRESS.findall(path.read_text(encoding="utf-8"))
            case _:
                continue
        found += [f"{path.relative_to(folder)}: {address}" for address in addresses if is_outside(address)]
    return found


def broken_links(page: Path, folder: Path) -> list[str]:
    """List the links and files of a page that lead nowhere within the book."""
    parsed = parsed_page(page)
    broken = []
    for address in parsed.links + parsed.fetched:
        if urlsplit(address).scheme or address.startswith("//"):
            continue
        target, anchor = local_file(page, address), unquote(urlsplit(address).fragment)
        if target.is_dir() or not target.exists() or not target.is_relative_to(folder):
            broken.append(f"{address}: no such file")
        elif anchor and target.suffix == ".html" and anchor not in parsed_page(target).anchors:
            broken.append(f"{address}: no such place on that page")
    return broken


def pictures_without_description(page: Path) -> list[str]:
    """List the pictures of a page whose alternative text is missing or only a file name."""
    parsed = parsed_page(page)
    missing = []
    for picture in parsed.pictures:
        described = (picture.get("alt") or "").strip()
        file_name = re.search(r"\.(png|svg|jpe?g)$", described) or described.startswith(("<", "../_images"))
        if not described or file_name:
            missing.append(f"{(picture.get('src') or '')[:80]}: {described!r}")
    for drawing in parsed.drawings:
        if not drawing.get("aria-label") and not drawing.get("aria-labelledby"):
            missing.append(f"inline drawing {drawing.get('id') or ''}")
    return missing


def test_the_book_is_newer_than_its_sources() -> None:
    built = (BUILT / "index.html").stat().st_mtime
    sources = [path for pattern in SOURCES for path in ROOT.glob(pattern) if path.is_file()]
    newer = [
        str(path.relative_to(ROOT))
        for path in sources
        if path.stat().st_mtime > built and "__pycache__" not in path.parts
    ]
    assert not newer, f"changed since the book was built; run `make book`: {newer}"


def test_no_file_of_the_book_is_fetched_from_elsewhere() -> None:
    assert outside_files(BUILT) == []


@every_page
def test_no_link_within_the_book_is_broken(page: Path) -> None:
    assert broken_links(page, BUILT) == []


@every_page
def test_every_picture_is_described(page: Path) -> None:
    assert pictures_without_description(page) == []


def test_the_plain_checks_can_fail(tmp_path: Path) -> None:
    style = '@import "https://example.org/a.css"; p { background: url(//example.org/b) }'
    (tmp_path / "style.css").write_text(style)
    (tmp_path / "script.js").write_text('load.src="https://example.org/c.js"; fetch(`https://example.org/d`)')
    page = tmp_path / "page.html"
    page.write_text(
        '<script src="https://example.org/e.js"></script><link rel="stylesheet" href="//example.org/f.css">'
        '<style>p { background: url("https://example.org/g") }</style>'
        '<p style="background: url(http://example.org/h)">'
        '<a href="https://example.org/">fine</a><a href="absent.html">a</a>'
        '<a href="#absent">b</a><a id="here" href="#here">'
        '<img src="style.css" alt="../_images/0ab.png"><img src="style.css">'
        '<img src="style.css" alt="Described">'
    )
    assert {line[-1] for line in outside_files(tmp_path)} == {"s", "b", "d", "g", "h"}
    assert len(outside_files(tmp_path)) == 8
    assert broken_links(page, tmp_path) == [
        "absent.html: no such file",
        "#absent: no such place on that page",
    ]
    assert len(pictures_without_description(page)) == 2


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadlessBrowser]:
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium is installed, so the pages cannot be opened in a browser")
    running = HeadlessBrowser(program, tmp_path_factory.mktemp("browser"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def visits(browser: HeadlessBrowser) -> dict[Path, Visit]:
    """Open every page once; all checks of a page look at that visit."""
    return {page: browser.visit(page.as_uri()) for page in READ_PAGES}


FAILED_FONTS = "[...document.fonts].filter(font => font.status === 'error').map(font => font.family)"


@every_read_page
def test_page_opens_without_error_and_without_network(
    page: Path, visits: dict[Path, Visit], browser: HeadlessBrowser
) -> None:
    assert visits[page].errors == []
    assert visits[page].outside_requests == []
    assert browser.evaluate(visits[page], FAILED_FONTS) == []


UNRENDERED = """
[...document.querySelectorAll(".math")].filter(
  math => !math.querySelector("mjx-container") || math.querySelector("mjx-merror, [data-mjx-error]")
).map(math => math.textContent.slice(0, 80))
"""


@every_read_page
def test_every_equation_is_rendered(page: Path, visits: dict[Path, Visit], browser: HeadlessBrowser) -> None:
    assert browser.evaluate(visits[page], UNRENDERED) == []


def test_the_book_has_equations(visits: dict[Path, Visit], browser: HeadlessBrowser) -> None:
    count = "document.querySelectorAll('mjx-container').length"
    assert sum(browser.evaluate(visit, count) for visit in visits.values()) > 20


SEARCH = """
[...document.querySelectorAll("table.searchable")].map(table => {
  const box = table.closest(".dt-container");
  const field = box && box.querySelector(".dt-search input");
  if (!field) return "no search field";
  const rows = () => new DataTable.Api(table).rows({search: "applied"}).count();
  const all = rows();
  field.value = "no row holds these words";
  field.dispatchEvent(new Event("input", {bubbles: true}));
  const none = rows();
  field.value = "";
  field.dispatchEvent(new Event("input", {bubbles: true}));
  return all > 0 && none === 0 && rows() === all ? "searchable" : `rows: ${all}, ${none}, ${rows()}`;
})
"""


@every_read_page
def test_searchable_tables_can_be_searched(
    page: Path, visits: dict[Path, Visit], browser: HeadlessBrowser
) -> None:
    expected = len(re.findall(r"<table[^>]*class=\"[^\"]*\bsearchable\b", page.read_text(encoding="utf-8")))
    assert browser.evaluate(visits[page], SEARCH) == ["searchable"] * expected


@every_read_page
def test_page_does_not_scroll_sideways_on_a_phone(
    page: Path, visits: dict[Path, Visit], browser: HeadlessBrowser
) -> None:
    visit = visits[page]
    browser.resize(visit, PHONE_WIDTH, 844)
    width = browser.evaluate(
        visit, "new Promise(done => setTimeout(() => done(document.documentElement.scrollWidth), 200))"
    )
    assert width <= PHONE_WIDTH


BRIGHTNESS = """
(() => {
  const light = element => {
    const parts = getComputedStyle(element).color.match(/[\\d.]+/g).map(Number);
    return (0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2]) / 255;
  };
  const ground = getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number);
  const cards = [...document.querySelectorAll(".bd-article figure img, .bd-article .cell_output img")]
    .map(image => getComputedStyle(image).backgroundColor);
  const texts = [...document.querySelectorAll(".bd-article :is(p, td, th, h1, h2, figcaption)")].map(light);
  return { ground: Math.max(...ground.slice(0, 3)) / 255, darkest: Math.min(1, ...texts), cards };
})()
"""


@every_read_page
def test_dark_mode_is_dark_and_figures_keep_a_white_card(page: Path, browser: HeadlessBrowser) -> None:
    visit = browser.visit(page.as_uri(), dark=True)
    seen = browser.evaluate(visit, BRIGHTNESS)
    browser.leave(visit)
    assert seen["ground"] < 0.25
    assert seen["darkest"] > 0.45
    assert set(seen["cards"]) <= {"rgb(255, 255, 255)"}


def test_the_checks_in_a_browser_can_fail(browser: HeadlessBrowser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        '<script src="https://example.org/a.js"></script><script>undefinedName()</script>'
        '<script src="absent.js"></script>'
        '<div class="math">\\(x\\)</div><div style="width: 900px">wide</div>'
    )
    visit = browser.visit(page.as_uri(), width=PHONE_WIDTH)
    unrendered = browser.evaluate(visit, UNRENDERED)
    width = browser.evaluate(visit, "document.documentElement.scrollWidth")
    browser.leave(visit)
    assert visit.outside_requests == ["https://example.org/a.js"]
    assert len(visit.errors) == 3
    assert unrendered == ["\\(x\\)"]
    assert width > PHONE_WIDTH


@pytest.mark.skipif(os.name != "posix", reason="network namespaces exist on Linux only")
def test_a_request_gets_no_answer(browser: HeadlessBrowser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p>Nothing here.</p>")
    visit = browser.visit(page.as_uri())
    ask = "fetch('https://example.org/').then(() => 'answered', () => 'no network')"
    answer = browser.evaluate(visit, ask)
    browser.leave(visit)
    assert answer == "no network"
