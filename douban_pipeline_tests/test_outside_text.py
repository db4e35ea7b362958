"""No text from outside can crash a function that reads it: it is read, or refused by the error meant for that."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from douban_pipeline.cms import numbers, people, values, vocabulary
from douban_pipeline.comments import cms_import, text_pieces, word_forms
from douban_pipeline.core.errors import ProblemsError, SourceError
from douban_pipeline.core.llm_answers import Reader
from douban_pipeline.digest import answers, articles, suspicions
from douban_pipeline.douban.intros import second_reading
from douban_pipeline.douban.intros.factguard import LengthLimits, candidates_for_people, inspect, marks, similarity
from douban_pipeline.douban.intros.facts import FactSheet
from douban_pipeline.douban.intros.proofs import stored_statements
from douban_pipeline.douban.sources.douban_php import parse_subject
from douban_pipeline.feeds import discovery
from douban_pipeline.feeds.clients import lists, moments, opml, syndication
from douban_pipeline.feeds.clients import values as feed_values
from douban_pipeline.feeds.reading.content import safe_html
from douban_pipeline.matching import titles
from douban_pipeline.matching.people import overlap
from douban_pipeline.matching.text import normalise, simplify_taiwan
from douban_pipeline.tmdb.enrichment.chinese_phrases import read_chinese
from douban_pipeline.tmdb.enrichment.english_phrases import read_english
from douban_pipeline.tmdb.enrichment.filters import years_in
from douban_pipeline.tmdb.enrichment.route import tidied

SIGNS = (
    *"《》〈〉「」『』“”‘’（）()【】[]{}<>&;;；:：!！?？。｡．.…,，、·・/／\\|-—～~_'\"`#@*+=%$^\n\t ",
    *("……", "！》", "？”", "。」", "...", "\u3000", "\u00a0", "\u200b", "\u200c", "\u202e", "\u0301", "\ufeff", "\x00"),
    *("👍🏽", "&amp;", "<b>", "</p>", "&#x110000;", "\\ud800", "```", "null", "<think>", "http://a.b/?", "//", "[["),
)
WORDS = (
    *(
        "第二季",
        "第",
        "季",
        "S01",
        "E02",
        "1080P",
        "2016",
        "3月",
        "十二",
        "〇",
        "½",
        "٣",
        "Ⅳ",
        "中国",
        "刘德华",
        "他",
        "没有",
    ),
    *(
        "饰演",
        "由",
        "导演",
        "Bocchi the Rock",
        "A. B.",
        "de",
        "小满",
        "老周收养了小满",
        "于是",
        "谁演过",
        "when",
        "who",
    ),
    *("1e400", "-1", "2026-11-29T00:00:00+99:99", "Sat, 31 Feb 2026 25:61:61 XYZ", "24:00", "12:34:56", "@1"),
)
TEXTS = st.lists(st.sampled_from((*SIGNS, *WORDS)), max_size=14).map("".join) | st.text(max_size=40)

HALF = "\ud800"
"""Half a pair, which JSON can hold."""
ROOMY = LengthLimits(0, 10_000)


def sheet_of(text: str) -> FactSheet:
    """Return a fact sheet of which every text is from outside."""
    return FactSheet(text or "片名", aliases=(text,), genres=(text,), directors=(text,), actors=(text,), synopsis=text)


def intro(text: str) -> None:
    for sheet in (sheet_of(text), FactSheet("灯塔下的信", synopsis="守塔人老周收养了海难中的孤儿小满。小满走了。")):
        inspect(text, sheet, known_people={"小满"}, others=(text, "他走了。"), limits=ROOMY)
        asked = json.loads(second_reading.messages(text, sheet)[1]["content"])["parts"]
        marks(text, sheet)
        for basis, said in (("none", ""), ("synopsis", text), ("general", text)):
            proof = {"basis": basis, "passages": [said], "actor": said, "target": said, "action": said, "amount": said}
            statements = [
                {"text": part["text"], "number": part["number"], "negated": False, "modality": "fact", "problem": said}
                | proof
                for part in asked
            ]
            reading = second_reading.read(text, sheet, {"statements": statements})
            list(stored_statements(reading.to_payload(), text))


def answer_of_a_model(text: str) -> None:
    schema = {"required": ["summary"], "properties": {"summary": {"type": "string"}}}
    for content in (text, json.dumps({"summary": text}), f"{text}{{}}{text}"):
        body = json.dumps(
            {"choices": [{"message": {"content": content}, "finish_reason": text or None}], "model": text}
        )
        error = json.dumps({"error": {"message": text, "code": text, "metadata": {"reason": text}}})
        reader = Reader(schema, text)
        refused(reader.parse, body.encode())
        refused(reader.parse, body.replace('"finish_reason"', '"finish"').encode())
        refused(reader.parse, error.encode())
        refused(reader.parse, text.encode())
        refused(reader.refuse, 400, httpx.Headers(), error.encode())


def feed(text: str) -> None:
    item = f"<guid>{text}</guid><pubDate>{text}</pubDate><link>{text}</link><description>{text}</description>"
    rss = f"<rss><channel><title>{text}</title><item>{item}</item></channel></rss>"
    names = ("id", "title", "url", "date_published", "content_html", "authors", "vod_id", "vod_name", "vod_time")
    rows = [dict.fromkeys(names, text), dict.fromkeys(names, text + HALF), {"id": 1, "vod_id": 1}, text]
    as_json = {"version": "https://jsonfeed.org/version/1.1", "title": text, "items": rows, "list": rows, "code": 1}
    here: dict[str, Any] = {"url": "https://a/", "now": 0, "zone": UTC, "most": 9}
    json_body = json.dumps(as_json).encode()
    for body in (rss, text, f"<?xml version='1.0' encoding='{text}'?>{rss}"):
        refused(syndication.parse_feed, "a", body.encode(), f"text/xml; charset={text}", **here)
    refused(syndication.parse_feed, "a", json_body, text, **here)
    refused(lists.parse_videos, "a", json_body, **here)
    for path in ("list", text):
        refused(lists.parse_list, "a", json_body, options={"path": path, "id": path}, **here)
    refused(opml.read_opml, text)
    refused(opml.read_opml, f"<opml><body><outline xmlUrl='{text}' title='{text}'/></body></opml>")
    page = f"<link rel='alternate' type='application/rss+xml' href='{text}'>{text}"
    discovery.feeds_of_page(page.encode(), "http://a/")


def subject(text: str) -> None:
    names = ("title", "original_title", "aka", "year", "rating", "directors", "casts", "summary", "durations", "type")
    for value in (text, [text], {"name": text, "title": text}, [{"name": text + HALF, "title": text}]):
        refused(parse_subject, json.dumps({"id": 1, **dict.fromkeys(names, value)}).encode(), 1)
    refused(parse_subject, text.encode(), 1)


def refused(read: Callable[..., object], *given: Any, **named: Any) -> None:
    """Read; the error that says that something is no such text is allowed."""
    with suppress(SourceError, ProblemsError):
        read(*given, **named)


READERS: dict[str, tuple[Callable[[str], object], ...]] = {
    "titles": (
        titles.readings,
        titles.wider_readings,
        titles.alias_readings,
        titles.lone_mark,
        titles.clean_title,
        titles.cache_key,
        normalise,
        simplify_taiwan,
    ),
    "columns of the CMS": (
        values.readable,
        values.year_shown,
        values.people_of,
        values.aliases_of,
        values.content_text,
        values.content_html,
        values.blurb,
        lambda text: values.storable(text, "utf8mb3"),
        lambda text: values.picture_address(text, text),
        lambda text: vocabulary.regions_of([text]),
        lambda text: vocabulary.genres_of([text]),
        numbers.year_of,
        numbers.minutes_of,
        numbers.score,
        lambda text: numbers.episodes_of(text, text),
    ),
    "people": (people.name_keys, lambda text: overlap((text, "小满"), ("小满", text))),
    "intros": (intro, candidates_for_people, lambda text: similarity(text, text, ())),
    "answers of models": (answer_of_a_model,),
    "subjects": (subject,),
    "feeds": (
        feed,
        moments.written_time,
        feed_values.plain,
        lambda text: feed_values.moment_of(text, UTC),
        lambda text: safe_html(f"<a href='{text}'>", text, feed_values.link_of(f"http://{text}", "")),
    ),
    "articles": (
        articles.body_of,
        articles.url_hash,
        lambda text: articles.content_hash(text, text),
        lambda text: suspicions.without(text, suspicions.suspicious_sentences(text, text)),
        lambda text: [answers.problem_of(kind, {"score": text, "summary": text}) for kind in ("analysis", "digest")],
    ),
    "questions": (read_chinese, read_english, tidied, years_in),
    "comments": (
        word_forms.clean,
        word_forms.normalise,
        word_forms.fold,
        word_forms.spellings,
        text_pieces.pieces,
        text_pieces.mentions,
        cms_import.as_typed,
    ),
}


@pytest.mark.parametrize("kind", READERS)
def test_no_text_crashes_what_reads_it(kind: str) -> None:
    @settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
    @given(TEXTS)
    def read(text: str) -> None:
        for reader in READERS[kind]:
            reader(text)

    read()
