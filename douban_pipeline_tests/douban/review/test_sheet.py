"""What the review sheet holds: both sides of every field, how the matcher read them, and outside text as text only."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.douban.review.records.rules import MOST_NOTE, MOST_REVIEWER
from douban_pipeline.douban.review.worklist.page import sheet_page
from douban_pipeline.douban.review.worklist.queue import review_queue_of
from douban_pipeline.douban.review.worklist.sheet import LABELS, cards_of, frame_of, plain
from douban_pipeline_tests.douban.review.shelves import Case, shelved
from douban_pipeline_tests.harness.fixtures.library import Library

HOSTILE = "</script><script>alert(1)</script><!-- \"'&amp;`${1}\u202eexe\u2028\u0000|: {x: [y]} # no"

FACTS: dict[str, Any] = {
    "title": "长河落日",
    "original_title": "Long River",
    "aliases": ["大河(港)"],
    "year": 2021,
    "release_years": [2021, 2022],
    "kind": "series",
    "regions": ["中国大陆"],
    "languages": ["汉语普通话"],
    "directors": ["甲"],
    "actors": ["乙", "丙"],
    "genres": ["剧情"],
    "duration_minutes": 45,
    "episodes": 40,
    "rating": 7.9,
    "votes": 12345,
}
POINTS = [
    {"name": "title", "outcome": "agree", "points": 45.0, "weight": 45.0, "note": ""},
    {"name": "year", "outcome": "disagree", "points": 0.0, "weight": 15.0, "note": ""},
    {"name": "director", "outcome": "unknown", "points": 0.0, "weight": 12.0, "note": ""},
    {"name": "tie_break", "outcome": "agree", "points": 2.0, "weight": 2.0, "note": ""},
]
CMS = {
    "type_id": 13,
    "vod_name": "长河落日 第二季",
    "vod_sub": "落日",
    "vod_year": "2023",
    "vod_area": "大陆",
    "vod_director": "甲,乙",
    "vod_total": 40,
    "vod_remarks": "全40集",
}


def cards(library: Library) -> dict[int, dict[str, Any]]:
    """Return the cards of what waits as a browser reads them, by video."""
    data = cards_of(library.services, review_queue_of(library.services, most=100).first)
    return {card["vod"]: card for card in json.loads(json.dumps(data))}


def only_card(library: Library) -> dict[str, Any]:
    """Return the card of the only video that waits."""
    [card] = cards(library).values()
    return card


def test_both_sides_of_every_field(shared_library):
    candidate = {"title": "长河落日", "year": 2021, "facts": FACTS, "points": POINTS, "score": 47.0}
    library = shelved(shared_library, [Case(4, CMS, candidate=candidate)])
    card = only_card(library)
    assert card["facts"] == {
        "title": ["长河落日 第二季"],
        "aliases": ["落日"],
        "year": ["2023"],
        "kind": ["国产剧", "剧集"],
        "region": ["大陆"],
        "director": ["甲", "乙"],
        "length": ["40 集"],
        "remarks": ["全40集"],
    }
    [shown] = card["candidates"]
    assert shown["facts"] == {
        "title": ["长河落日", "Long River"],
        "aliases": ["大河(港)"],
        "year": ["2021", "2022"],
        "kind": ["剧集"],
        "region": ["中国大陆"],
        "language": ["汉语普通话"],
        "director": ["甲"],
        "actors": ["乙", "丙"],
        "genre": ["剧情"],
        "length": ["45 分钟", "40 集"],
        "rating": ["7.9"],
        "votes": ["12,345"],
    }
    assert set(card["facts"]) | set(shown["facts"]) <= set(LABELS)
    assert shown["marks"] == {
        "title": ["agree", 45.0, 45.0],
        "year": ["disagree", 0.0, 15.0],
        "director": ["unknown", 0.0, 12.0],
        "rating": ["", 2.0, 2.0],
    }
    assert (shown["score"], card["score"], card["lead"]) == (47.0, 92.0, 20.0)


def test_the_sheet_says_how_scores_come_about(shared_library):
    data = frame_of(shelved(shared_library, []).services, "")
    assert (data["profile"], data["highest"]) == ("calibrated（按可比部分的占比）", 100)


@pytest.mark.parametrize(
    ("verdict", "candidate", "card", "shown"),
    [
        pytest.param(
            {"reasons": ["CONFLICT", "YEAR_GAP"]}, {"rejects": ["YEAR_GAP"]}, ["年份冲突"], ["年份冲突"], id="year"
        ),
        pytest.param({"reasons": ["LEAD_TOO_SMALL", "TWIN_SUBJECTS"]}, {}, ["多候选接近"], [], id="two are near"),
        pytest.param({"reasons": ["ID_LOCKED"]}, {}, ["锁定阻止"], [], id="locked"),
        pytest.param({"reasons": ["BELOW_CONFIRM", "YEAR_OFF"]}, {}, [], [], id="no reject"),
        pytest.param({}, {"rejects": ["REGION_CONFLICT", "DIRECTOR_CONFLICT"]}, [], ["地区冲突", "导演冲突"], id="two"),
    ],
)
def test_what_holds_a_link_back_is_a_mark(shared_library, verdict, candidate, card, shown):
    library = shelved(shared_library, [Case(4, verdict=verdict, candidate=candidate)])
    found = only_card(library)
    assert (found["labels"], found["candidates"][0]["labels"]) == (card, shown)


@pytest.mark.parametrize(
    ("code", "marks"),
    [
        # The names agree, and yet it is another season.
        ("SEASON_CONFLICT", {"title": ["disagree", 45.0, 45.0]}),
        ("EDITION_CONFLICT", {"title": ["disagree", 45.0, 45.0]}),
        ("KIND_CONFLICT", {"kind": ["disagree", None, None]}),
        ("YEAR_OFF", {}),
    ],
)
def test_a_conflict_marks_the_row_it_speaks_against(shared_library, code: str, marks: dict[str, Any]):
    candidate = {"points": POINTS[:1], "conflicts": {code: "对不上"}, "rejects": [code]}
    library = shelved(shared_library, [Case(4, candidate=candidate)])
    [shown] = only_card(library)["candidates"]
    assert shown["marks"] == {"title": ["agree", 45.0, 45.0], **marks}
    assert shown["conflicts"] == ["对不上"]


def test_what_a_reviewer_has_to_know_first(shared_library):
    library = shelved(
        shared_library,
        [
            Case(4, {"vod_douban_id": 90_000_999}, {"douban_id_locked": True, "vod_douban_id": 90_000_999}),
            Case(5, verdict=None),
            Case(6, verdict={"fingerprint": "x" * 32}, candidate={"fetched": False}),
            Case(7, verdict={"facts": {"posters": [90_000_007]}}),
        ],
    )
    found = cards(library)
    assert [(found[4][name]) for name in ("id", "locked", "stale")] == [90_000_999, True, False]
    assert (found[5]["verdict"], found[5]["candidates"], found[5]["score"]) == (0, [], None)
    assert (found[6]["stale"], found[6]["candidates"][0]["fetched"]) == (True, False)
    assert [found[vod_id]["candidates"][0]["samePoster"] for vod_id in (6, 7)] == [False, True]


def test_whom_a_subject_belongs_to_already(shared_library):
    linked = {"vod_douban_id": 90_000_500}
    confirmed = {**linked, "douban_review_status": "CONFIRMED"}
    library = shelved(
        shared_library,
        [
            # It carries the subject itself, and its source fails.
            Case(4, linked, {**confirmed, "douban_sync_fail_count": 5}, candidate={"douban_id": 90_000_500}),
            Case(5, {"vod_name": "乙"}, candidate={"douban_id": 90_000_500}),
            Case(6, {**linked, "vod_name": "主人 & <3"}, confirmed, verdict=None),
            Case(7, {**linked, "vod_name": "存疑"}, linked, verdict=None),
        ],
    )
    found = cards(library)
    [own], [other] = found[4]["candidates"], found[5]["candidates"]
    assert (own["holders"], own["held"]) == (1, [[6, "主人 & <3"]])
    assert (other["holders"], other["held"]) == (2, [[4, "影片4"], [6, "主人 & <3"]])


def test_the_sheet_knows_its_library_and_nothing_secret(shared_library):
    services = shelved(shared_library, []).services
    assert frame_of(services, "") == frame_of(services, "")
    assert re.fullmatch("[0-9a-f]{16}", frame_of(services, "")["id"])


class Reader(HTMLParser):
    """Reads a page as a browser does: its elements, and what stands in scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.open = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside.append("")
            self.open = True

    def handle_endtag(self, tag: str) -> None:
        """Note that an element ends."""
        self.open = False

    def handle_data(self, data: str) -> None:
        """Note what stands in the newest script or style."""
        if self.open:
            self.inside[-1] += data


def test_outside_text_is_data_and_nothing_else(shared_library):
    candidate = {"title": HOSTILE, "conflicts": {"YEAR_OFF": HOSTILE}, "facts": {"title": HOSTILE, "actors": [HOSTILE]}}
    library = shelved(shared_library, [Case(4, {}, {"douban_review_reason": HOSTILE}, candidate=candidate)])
    card = only_card(library)
    [shown] = card["candidates"]
    for text in (shown["title"], shown["facts"]["actors"][0], shown["conflicts"][0], card["reason"]):
        assert "</script><script>alert(1)</script>" in text, "it is shown as it is"
        assert not re.search("[\u202e\u2028\0\n]", text), "but cannot turn the page around"


def test_the_page_runs_its_own_script_and_reaches_the_service_alone(shared_library):
    data = frame_of(shelved(shared_library, []).services, HOSTILE)
    page, policy = sheet_page(data)
    assert page.count(b"<script") == page.count(b"</script") == 2
    assert b"<!--" not in page
    found = Reader(page.decode())
    assert [tag for tag, _ in found.elements].count("script") == 2
    style, reported, script = found.inside
    assert json.loads(reported) == json.loads(json.dumps(data))
    [in_page] = [attrs["content"] for tag, attrs in found.elements if attrs.get("http-equiv")]
    assert (
        policy
        == in_page
        == (
            f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; img-src 'self' data:; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'"
        )
    )


def digest(text: str) -> str:
    """Return how a policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_page_makes_no_markup_of_text(shared_library):
    page = sheet_page(frame_of(shelved(shared_library, []).services, ""))[0].decode()
    found = Reader(page)
    for tag, attrs in found.elements:
        assert not {"src", "href", "action", "style"} & set(attrs), tag
        assert not any(name.startswith("on") for name in attrs), tag
    for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert name not in page
    assert "url(" not in found.inside[0]
    assert "@import" not in found.inside[0]


def test_fields_hold_what_may_be_recorded():
    body = (
        resources.files("douban_pipeline.douban.review.worklist")
        .joinpath("sheet_files", "sheet.html")
        .read_text("utf-8")
    )
    limits = dict(re.findall(r'data-who="(\w+)" maxlength="(\d+)"', body))
    assert limits == {"reviewer": str(MOST_REVIEWER), "note": str(MOST_NOTE)}


@given(st.text())
def test_any_text_becomes_one_plain_line(text: str):
    line = plain(text)
    assert line == " ".join(line.split())
    assert len(line) <= 200
    line.encode()
    assert plain(line) == line
