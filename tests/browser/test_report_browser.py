"""Test the page of `report` in a headless Chromium, which opens the page from the file system as a reader does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support_report import row, write_run

from fairseq_posenc.commands import report

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="there is no chromium; install it with: apt-get install chromium"),
]
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a page that compares two runs of two recipes."""
    folder = tmp_path_factory.mktemp("small")
    rows = [row("shaw[clip=4]", 9.5), row("none", 20.5, minutes=3.0), row("</script><b>t5", 11.0, minutes=None)]
    lm = [{"encoding": "xl", "perplexity": 24.3, "parameters": 5}, {"encoding": "rope", "perplexity": 22.0}]
    first = write_run(folder / "first", rows, {"shaw.clip=4": 100, "none": 100})
    second, page = write_run(folder / "second", lm, recipe="lm_wikitext103"), folder / "report.html"
    assert report.main([str(first), str(second), "--output", str(page)]) == 0
    return page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium refuses to run as root in its sandbox
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Return a function that opens a page with all charts drawn; no page may have errors or load anything."""
    problems = list[str]()

    def open_page(path: Path, **options: Any) -> Any:
        page = browser.new_page(**options)
        page.on("console", lambda line: problems.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: loads(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-drawn]")  # the page sets this attribute when all charts are drawn
        return page

    def loads(url: str) -> None:
        if not url.startswith(("file:", "data:")):
            problems.append(url)

    yield open_page
    assert not problems


def settle(page: Any) -> None:
    """Wait until the page has drawn what an event has changed."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def names(page: Any) -> list[str]:
    return [cell.inner_text() for cell in page.query_selector_all("tbody th") if cell.is_visible()]


def test_it_opens_in_both_colours_and_prints_in_light_ones(opened: Open, small: Path) -> None:
    page = opened(small, color_scheme="dark", viewport={"width": 1030, "height": 700})
    assert names(page) == ["shaw", "none", "</script><b>t5", "xl", "rope"]
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("() => { dispatchEvent(new Event('beforeprint')); }")
    assert page.evaluate(background) == "rgb(255, 255, 255)" != dark
    assert page.evaluate("document.documentElement.scrollWidth") <= 1030


def test_it_sorts_by_mouse_and_keyboard(opened: Open, small: Path) -> None:
    page = opened(small)
    heading = page.locator("thead th", has_text="BLEU")
    heading.locator("button").click()
    assert names(page)[:3] == ["none", "</script><b>t5", "shaw"]  # empty cells stay at the end
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    assert names(page)[:3] == ["shaw", "</script><b>t5", "none"]


def test_it_filters_rows_and_curves(opened: Open, small: Path) -> None:
    page = opened(small)
    shown = "() => Bokeh.documents[0].roots()[0].renderers[0].view.filter.booleans"
    assert page.evaluate(shown) == [True, True]
    page.fill("#filter", "TRANSLATION clip=4")
    assert names(page) == ["shaw"]
    assert page.inner_text("#count") == "1 of 5 rows"
    assert page.evaluate(shown) == [False, True]
    assert page.is_visible("#loss-0")
    page.fill("#filter", "")
    assert len(names(page)) == 5


def test_charts_have_other_costs_and_tooltips(opened: Open, small: Path) -> None:
    page = opened(small)
    page.select_option("#cost", label="parameters")
    chart = page.locator("#loss-0")
    chart.scroll_into_view_if_needed()
    settle(page)
    box = chart.bounding_box()
    tooltip = page.locator(".bk-Tooltip", has_text="training")
    for height in range(0, int(box["height"]), 8):  # a curve crosses the middle of the chart somewhere
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + height)
        settle(page)
        if tooltip.count():
            break
    assert tooltip.first.is_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_names_are_not_cut_and_a_phone_does_not_scroll_sideways(opened: Open, small: Path, width: int) -> None:
    """On a phone, long names take several lines; names of the papers' rows do so on every screen."""
    page = opened(small, viewport={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("() => document.querySelectorAll('details').forEach((item) => { item.open = true; })")
    assert page.locator(".paper tbody th").count() > 0
    for cells in ("tbody th", ".paper tbody th > span"):
        cut = f"[...document.querySelectorAll('{cells}')].filter((cell) => cell.scrollWidth > cell.clientWidth).length"
        assert page.evaluate(cut) == 0
