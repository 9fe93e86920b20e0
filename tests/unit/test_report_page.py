"""The page and its pictures: whole, self-contained, the same each time, and unmoved by hostile texts."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from typing import Any

import pytest

from localspec.session.reporting.canvas import png_of, spread, svg_of
from localspec.session.reporting.page import ReportRun, make_page, pictures_of
from localspec.session.reporting.palette import COLOURS, arm_colours
from localspec.session.reporting.pictures import arm_names, overall_pictures, workload_pictures
from localspec.session.reporting.receipt import make_receipt
from localspec.session.reporting.words import overview
from tests.report_kit import made_up_document

HOSTILE = "</title></svg><script>alert(1)</script><img src=x onerror=alert(2)> $\\frac{1}{0$ & \"'\x1b[31m\x00 \u202e"


def run_of(document: dict[str, Any], run_id: int = 3, state: str = "done") -> ReportRun:
    return ReportRun(run_id, "2026-11-29T21:40:00+00:00", state, "", document)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return made_up_document("edit", "chat")


@pytest.fixture(scope="module")
def short() -> dict[str, Any]:
    """A document with half as much to draw."""
    return made_up_document("edit")


@pytest.fixture(scope="module")
def page(document: dict[str, Any]) -> str:
    return make_page([run_of(document), run_of(document, 4)], "", "")


class Reader(HTMLParser):
    """Checks that tags are nested, and collects what matters."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_the_page_says_what_was_found(page: str, document: dict[str, Any]) -> None:
    reader = Reader(page)
    for workload in document["workloads"]:
        for arm in workload["arms"][1:]:
            assert arm["sentence"] in reader.text
    assert "ab" * 32 in reader.text
    assert "Overview" in reader.text
    # Two runs with two pictures of all workloads and four of each of two.
    assert sum(tag == "svg" for tag, _ in reader.tags) == 2 * (2 + 2 * 4)
    assert "not shown" not in reader.text


def test_the_page_needs_nothing_from_elsewhere_and_runs_nothing(page: str) -> None:
    for tag, attributes in Reader(page).tags:
        assert tag not in ("script", "link", "img", "iframe", "object", "image", "base", "foreignobject")
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcset", "action")]
        assert all(attributes[name].startswith("#") for name in ("href", "xlink:href") if name in attributes)
    assert "//" not in re.sub(r"<[^>]*http-equiv[^>]*>", "", page)
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page


def test_ids_are_unique_and_every_reference_has_its_own(page: str) -> None:
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(ids)


def test_every_picture_has_words_for_those_who_do_not_see_it(page: str) -> None:
    tags = Reader(page).tags
    labels = [attributes["aria-label"] for tag, attributes in tags if attributes.get("role") == "img"]
    assert len(labels) == sum(tag == "svg" for tag, _ in tags)
    assert all(len(label) > 20 for label in labels)
    assert sum(tag == "details" for tag, _ in tags) == len(labels)


def test_the_page_has_two_sets_of_colours_and_pictures_use_no_others(page: str) -> None:
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    pictures = "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL))
    assert set(re.findall(r"var\(--([\w-]+)\)", pictures)) <= {colour.name for colour in COLOURS}
    assert not re.findall(r"#[0-9a-f]{6}\b", pictures)


def test_the_same_runs_make_the_same_page(short: dict[str, Any]) -> None:
    assert make_page([run_of(short)], "x", "") == make_page([run_of(short)], "x", "")


def test_one_run_needs_no_overview(short: dict[str, Any]) -> None:
    assert "Overview" not in make_page([run_of(short)], "", "")


def test_where_models_are_kept_is_not_told(short: dict[str, Any]) -> None:
    given = {**short, "draft_failure": "Cannot read /home/somebody/models/draft.gguf"}
    found = make_page([run_of(given)], "", "/home/somebody")
    assert "somebody" not in found
    assert "Cannot read ~/models/draft.gguf" in found
    assert "target-3b-q4_k_m.gguf" in found


def hostile(found: Any) -> Any:
    """Return a document in which every text is hostile, but for those that a program reads."""
    kept = {"method", "verdict", "power_source", "kind"}
    if isinstance(found, dict):
        return {key: item if key in kept else hostile(item) for key, item in found.items()}
    if isinstance(found, list):
        return [hostile(item) for item in found]
    return f"{found}{HOSTILE}" if isinstance(found, str) else found


def test_hostile_texts_stay_texts(short: dict[str, Any]) -> None:
    given = hostile(short) | {"draft_failure": HOSTILE, "failure": HOSTILE}
    run = ReportRun(5, HOSTILE, "done", HOSTILE, given)
    found = make_page([run, run_of(given, 6)], HOSTILE, "")
    reader = Reader(found)
    assert not [tag for tag, _ in reader.tags if tag in ("script", "img")]
    assert "<script>alert(1)</script>" in reader.text
    assert "\x1b" not in found and "\x00" not in found and "\u202e" not in found
    # Two runs with two pictures of all workloads and four of the one.
    assert sum(tag == "svg" for tag, _ in reader.tags) == 2 * (2 + 4)
    names = [name for name, _ in pictures_of([run])]
    assert all(re.fullmatch(r"[a-z0-9-]{1,80}", name) for name in names)
    assert len(names) == len(set(names))


def test_a_svg_by_itself_is_well_formed(document: dict[str, Any]) -> None:
    workload = hostile(document)["workloads"][0]
    colours = arm_colours(arm_names([{"workloads": [workload]}]))
    for place, picture in enumerate(workload_pictures(workload, colours)):
        assert picture.draw is not None
        root = ElementTree.fromstring(svg_of(picture.draw, f"p{place}"))
        assert root.tag == "svg"
        assert "<script>" in "".join(root.itertext())


def test_pictures_alone_are_png_of_twice_the_width(document: dict[str, Any]) -> None:
    colours = arm_colours(["off", "draft", "ngram"])
    picture = overall_pictures(document, colours)[0]
    assert picture.draw is not None
    png = png_of(picture.draw)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(png[16:20], "big") == 1400
    assert b"Software\0localspec " in png[:512]


def test_where_there_is_too_little_the_page_says_so(document: dict[str, Any]) -> None:
    given = copy.deepcopy(document)
    for workload in given["workloads"]:
        workload["trials"] = []
    found = Reader(make_page([run_of(given)], "", "")).text
    assert "What checking drafts costs: not shown." in found
    assert "Tokens per second over time: not shown." in found
    assert "Drafts are faster" in found


@pytest.mark.parametrize("verdict", ["no_clear_difference", "too_little_to_judge"])
def test_too_few_pairs_have_one_word_everywhere(document: dict[str, Any], verdict: str) -> None:
    given = copy.deepcopy(document)
    for workload in given["workloads"]:
        for arm in workload["arms"]:
            if arm.get("speedup"):
                arm["speedup"] |= {"low": None, "high": None, "pairs": 2}
                arm |= {"verdict": verdict, "sentence": "With it, 2.88x in 2 pairs: too little to judge."}
    numbers = overall_pictures(given, arm_colours(["off", "draft", "ngram"]))[0].numbers
    assert numbers is not None and {row[-1] for row in numbers.rows if row[1] != "off"} == {"too little to judge"}
    assert {line.verdict for line in overview(given)} == {"too little to judge"}


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"workloads": None, "target": [], "build": 3, "memory": "x", "settings": {"speculation": {"draft": None}}},
        {"workloads": [{}, {"name": "x", "arms": [{}], "trials": [{}], "notes": [3], "summary": "Nothing."}]},
    ],
)
def test_documents_with_little_in_them_make_a_page(odd: dict[str, Any]) -> None:
    assert "not shown" in Reader(make_page([run_of(odd), run_of(odd, 4, "lost")], "", "")).text


@pytest.mark.parametrize(
    ("state", "given", "expected"),
    [
        ("lost", {}, "ended without a word"),
        ("interrupted", {}, "was interrupted"),
        ("done", {"interrupted": True}, "was interrupted"),
        ("running", {}, "still under way"),
        ("failed", {"failure": "The engine died."}, "This run ended early: The engine died."),
        ("done", {"device": {"power_source": "battery"}}, "ran on battery"),
        ("done", {"device": {"throttling": "the hardware slowed itself down"}}, "slowed itself down"),
    ],
)
def test_what_makes_a_run_doubtful_stands_first(state: str, given: dict[str, Any], expected: str) -> None:
    found = Reader(make_page([run_of(given, state=state)], "", "")).text
    assert expected in found.partition("Settings and receipt")[0]


def test_memory_is_told_as_planned_and_as_taken() -> None:
    rows = [{"device": "CPU", "model": "target", "weights_bytes": 2**30, "kv_bytes": 2**29}]
    real = [
        {"device": "CPU", "model": "target", "buffer": "a", "weights_bytes": 2**30},
        {"device": "CPU", "model": "target", "buffer": "b", "kv_bytes": 2**28},
    ]
    memory = {"plan": {"sentence": "Fits.", "rows": rows}, "real": {"rows": real}}
    found = Reader(make_page([run_of({"memory": memory})], "", "")).text
    assert "CPU target 1.50 GiB 1.25 GiB" in found


def test_arms_keep_their_colours() -> None:
    alone, together = arm_colours(["off", "ngram"]), arm_colours(["off", "draft n_max 2", "draft", "ngram", "other"])
    assert alone["ngram"] == together["ngram"]
    assert alone["off"] == together["off"]
    assert len({colour.mark.name for colour in together.values()}) == 5
    many = arm_colours([f"draft n_max {number}" for number in range(20)])
    assert len(many) == 20


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([], []),
        ([1.0, 5.0], [1.0, 5.0]),
        ([3.0, 3.0], [2.5, 3.5]),
        ([4.0, 1.0, 4.2], [3.6, 1.0, 4.6]),
        ([0.0, 0.5, 1.0], [-0.5, 0.5, 1.5]),
    ],
)
def test_labels_are_moved_apart_as_little_as_need_be(places: list[float], expected: list[float]) -> None:
    assert spread(places, 1.0) == pytest.approx(expected)


def test_unusable_figures_claim_nothing(short: dict[str, Any]) -> None:
    unusable = copy.deepcopy(short)
    for workload in unusable["workloads"]:
        baseline = [trial for trial in workload["trials"] if trial["arm"] == "off"]
        baseline[-1]["decode_tps"] = baseline[0]["decode_tps"] / 3.0
        for arm in workload["arms"][1:]:
            arm["verdict"], arm["sentence"] = "faster", "not to be relied on"
    text = Reader(make_page([run_of(unusable), run_of(unusable, 4)], "", "")).text
    assert "These figures are unusable" in text
    assert ", unusable" in text
    assert "Drafts are faster" not in text and "No clear difference between drafts and none" in text


@pytest.mark.parametrize(("start", "expected"), [("cold", "num_pairs 2, pacing_start cold"), (None, "num_pairs 2")])
def test_the_receipt_says_how_adaptive_drafting_began(start: str | None, expected: str) -> None:
    receipt = make_receipt({"settings": {"num_pairs": 2, "pacing_start": start}})
    assert [row.fact for row in receipt.settings if row.label == "measurement"] == [expected]


def test_a_suite_says_what_auto_promises(short: dict[str, Any]) -> None:
    given = {**short, "suite": {"sentences": ["met: auto / off, on the worst workload: 1.01 (chat) <b>"]}}
    found = make_page([run_of(given)], "", "")
    assert "Suite: met: auto / off, on the worst workload: 1.01 (chat) &lt;b&gt;" in found
    assert "Suite:" not in make_page([run_of(short)], "", "")
