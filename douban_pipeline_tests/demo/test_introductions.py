"""The stand-in model: faithful introductions that hardly resemble each other, and inventions when told to."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from douban_pipeline.demo.sample import load_subjects
from douban_pipeline.demo.stand_ins.faults import ENDPOINTS, MODEL_FAULTS, Fault, inventing
from douban_pipeline.demo.stand_ins.introduction_texts import PHRASES, Facts, han, introduction
from douban_pipeline.demo.stand_ins.inventions import INVENTIONS, InventionRequest, invented
from douban_pipeline.demo.stand_ins.replay import ReplayServer

SUBJECTS = load_subjects()
FAREWELL = next(subject for subject in SUBJECTS if subject["title"] == "霸王别姬")
PEOPLE = [name for subject in SUBJECTS for key in ("directors", "writers", "actors") for name in subject[key]]
TITLES = [subject["title"] for subject in SUBJECTS]
SYNOPSIS = "京剧学徒在师父的棍棒下长大，两个孩子约定唱一辈子的戏，然而世事变迁，戏台上下的情义渐渐有了裂痕。" * 2


def sheet(subject: Any, **more: Any) -> Facts:
    """Return the facts of a sample subject in the form in which the model gets them; what is unknown is left out."""
    facts = {
        "title": subject["title"],
        "year": subject["year"],
        "douban_id": subject["id"],
        "url": f"https://movie.douban.com/subject/{subject['id']}/",
        "original_title": subject["original_title"],
        "aliases": subject["aka"],
        "genres": subject["genres"],
        "regions": subject["regions"],
        "directors": subject["directors"],
        "writers": subject["writers"],
        "actors": subject["actors"],
        "kind": "film" if subject["kind"] == "movie" else "series",
        "episodes": subject["episodes"],
        "duration_minutes": subject["duration_min"],
        "synopsis": subject["summary"],
        **more,
    }
    return {name: value for name, value in facts.items() if value}


def words(facts: Facts) -> str:
    return json.dumps(facts, ensure_ascii=False)


def pieces(text: str, size: int = 8) -> set[str]:
    line = "".join(re.findall(r"[\u4e00-\u9fff]", text))
    return {line[start : start + size] for start in range(len(line) - size + 1)}


# --- faithful ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def faithful() -> dict[int, str]:
    return {subject["id"]: introduction(sheet(subject)) for subject in SUBJECTS}


def test_every_introduction_has_the_length_that_is_asked_for(faithful: dict[int, str]) -> None:
    assert {number: han(text) for number, text in faithful.items() if not 120 <= han(text) <= 265} == {}


@pytest.mark.parametrize("length", [(60, 90), (120, 300), (300, 500)])
def test_another_length_can_be_asked_for(length: tuple[int, int]) -> None:
    texts = [introduction(sheet(subject), length) for subject in SUBJECTS[:60]]
    assert sum(length[0] <= han(text) <= length[1] for text in texts) >= 57


def test_numbers_titles_and_latin_words_are_the_fact_sheets(faithful: dict[int, str]) -> None:
    for subject in SUBJECTS:
        text, facts = faithful[subject["id"]], words(sheet(subject))
        assert set(re.findall(r"\d+", text)) <= set(re.findall(r"\d+", facts)), text
        assert all(title in facts for title in re.findall(r"《(.*?)》", text)), text
        assert all(word in facts for word in re.findall(r"[A-Za-z]+", text)), text
        assert f"《{subject['title']}》" in text


def test_nothing_but_the_facts_names_a_person_or_a_thing_that_can_be_claimed() -> None:
    """Neutral words must not be taken for somebody's name, nor for a claim."""
    neutral = "\n".join(
        [
            *(mood for moods in PHRASES["moods"].values() for mood in moods),
            *PHRASES["any_mood"],
            *PHRASES["manners"],
            *(text for frame in PHRASES["frames"] for part in frame for text in part),
        ]
    )
    assert [name for name in PEOPLE if name in neutral and len(name) > 1] == []
    assert re.findall(r"[奖榜网]|评分|票房|口碑|热播|豆瓣|平台|独家|[零二三四五六七八九十百千万两\d]", neutral) == []
    assert not re.search(r"[A-Za-z0-9]", re.sub(r"\{[mng]\}", "", neutral))


def test_people_are_named_as_the_sheet_names_them(faithful: dict[int, str]) -> None:
    named = sum(any(name in faithful[one["id"]] for name in one["directors"]) for one in SUBJECTS if one["directors"])
    assert named == sum(bool(one["directors"]) for one in SUBJECTS)


def test_two_films_share_next_to_nothing(faithful: dict[int, str]) -> None:
    """A stand-in that repeats itself would be refused as a near-copy, whatever it says."""
    all_pieces = {number: pieces(text) for number, text in faithful.items()}
    alike = [
        (len(first & second) / len(first | second), one, other)
        for (one, first), (other, second) in itertools.combinations(all_pieces.items(), 2)
    ]
    assert max(alike)[0] < 0.12, max(alike)
    assert sum(share for share, *_ in alike) / len(alike) < 0.01


def test_the_synopsis_is_not_copied() -> None:
    facts = sheet(FAREWELL, synopsis=SYNOPSIS)
    for salt in map(str, range(50)):
        assert not pieces(introduction(facts, salt=salt), 12) & pieces(SYNOPSIS, 12)


def test_the_same_facts_get_the_same_text_and_others_another() -> None:
    facts = sheet(FAREWELL)
    assert introduction(facts) == introduction(json.loads(words(facts)))
    assert len({introduction(facts), introduction(facts, salt="x"), introduction({**facts, "year": 1994})}) == 3


def test_of_nothing_it_still_says_nothing_untrue() -> None:
    text = introduction({})
    assert "《本片》" in text
    assert 120 <= han(text) <= 300
    assert re.findall(r"\d", text) == []


# --- inventions -------------------------------------------------------------------------------------------------


def unknown(pattern: str, text: str, facts: Facts) -> list[str]:
    return [found for found in re.findall(pattern, text) if found not in words(facts)]


VIOLATES = {
    "invented_name": lambda text, facts: unknown(
        r"([陆沈顾程许韩唐苏叶江](?:景川|亦舟|南乔|知远|若棠|云笙|怀瑾|清越|书白|望舒))",
        text,
        facts,
    ),
    "borrowed_name": lambda text, facts: [
        name for name in PEOPLE if len(name) > 1 and name in text and name not in words(facts)
    ],
    "invented_year": lambda text, facts: unknown(r"(\d{4})年", text, facts),
    "invented_number": lambda text, facts: unknown(r"\d+", text, facts),
    "invented_link": lambda text, facts: re.findall(r"\w+\.(?:com|cn|top)", text),
    "invented_contact": lambda text, facts: re.findall(r"微信|QQ|@|公众号", text),
    "invented_title": lambda text, facts: unknown(r"《(.*?)》", text, facts),
    "invented_award": lambda text, facts: re.findall(r"奖|奥斯卡最佳", text),
    "invented_rating": lambda text, facts: re.findall(r"评分|票房|满分", text),
    "invented_platform": lambda text, facts: re.findall(r"爱奇艺|腾讯视频|优酷|芒果TV", text),
    "copied": lambda text, facts: pieces(text, 30) & pieces(facts["synopsis"], 30),
    "same_text": lambda text, facts: (
        pieces(text, 30) & pieces(invented("same_text", InventionRequest(sheet(SUBJECTS[3]))), 30)
    ),
    "too_short": lambda text, facts: han(text) < 120,
    "too_long": lambda text, facts: han(text) > 300,
    "markup": lambda text, facts: re.findall(r"[<>*#]", text),
    "emoji": lambda text, facts: re.findall(r"[\U0001f300-\U0001faff]", text),
}
"""How each invention shows; a faithful text shows none of them."""


def test_every_invention_is_known_to_this_test() -> None:
    assert set(VIOLATES) == set(INVENTIONS)


@pytest.mark.parametrize("kind", INVENTIONS)
def test_each_invention_is_wrong_in_its_own_way_and_right_otherwise(kind: str) -> None:
    lengths = {"too_short", "too_long"}
    for subject in SUBJECTS[:60]:
        facts = sheet(subject, synopsis=SYNOPSIS)
        text = invented(kind, InventionRequest(facts, people=PEOPLE, titles=TITLES))
        signs = {other for other, shows in VIOLATES.items() if shows(text, facts)}
        assert kind in signs, text
        # A year is a number; a made-up title may hold somebody's name. Those two show elsewhere too.
        assert signs <= {kind, "borrowed_name", "invented_number"}, (text, signs)
        assert kind in lengths or 120 <= han(text) <= 300, text
        assert f"《{subject['title']}》" in text


def test_faithful_texts_show_no_invention() -> None:
    quiet = set(VIOLATES) - {"borrowed_name"}  # a name inside a title or another name is none
    for subject in SUBJECTS:
        facts = sheet(subject, synopsis=SYNOPSIS)
        text = introduction(facts)
        assert [kind for kind in quiet if VIOLATES[kind](text, facts)] == [], text


def test_without_a_synopsis_there_is_nothing_to_copy() -> None:
    facts = sheet(FAREWELL, synopsis="")
    text = invented("copied", InventionRequest(facts))
    assert [kind for kind in set(VIOLATES) - {"copied", "borrowed_name"} if VIOLATES[kind](text, facts)] == []


# --- over HTTP --------------------------------------------------------------------------------------------------


class Model(ReplayServer):
    """The replay upstream, and a caller of its model."""

    def ask(self, facts: Facts, *violations: str) -> httpx.Response:
        asked = {"facts": facts, "length": [120, 300], **({"violations": violations} if violations else {})}
        return self.say(json.dumps(asked))

    def say(self, *messages: str) -> httpx.Response:
        request = {"model": "a/b", "messages": [{"role": "user", "content": message} for message in messages]}
        return CLIENT.post(self.llm_url, json=request, headers={"Authorization": "Bearer k"})


CLIENT = httpx.Client(timeout=10, trust_env=False)


@pytest.fixture(scope="module")
def running() -> Iterator[Model]:
    with Model(SUBJECTS) as server, CLIENT:
        yield server


@pytest.fixture
def server(running: Model) -> Model:
    running.faults.clear()
    running.requests.clear()
    running.invent = None
    return running


def text_of(answer: httpx.Response) -> str:
    return str(json.loads(answer.json()["choices"][0]["message"]["content"])["intro"])


@pytest.mark.parametrize(
    "wrap", [lambda facts: json.dumps({"facts": facts}), json.dumps, lambda facts: f"事实：{json.dumps(facts)}"]
)
def test_the_facts_are_found_in_the_last_user_message(server: Model, wrap: Any) -> None:
    facts = sheet(FAREWELL)
    answer = server.say("{}", wrap(facts))
    assert text_of(answer) == introduction(facts)


def test_an_invention_is_repaired_when_it_is_named(server: Model) -> None:
    facts = sheet(FAREWELL)
    server.faults.add("llm", "invented_award", match="霸王别姬".encode("unicode_escape").decode())
    assert VIOLATES["invented_award"](text_of(server.ask(facts)), facts)
    repaired = text_of(server.ask(facts, "提到了奖项"))
    assert not VIOLATES["invented_award"](repaired, facts)
    assert repaired != introduction(facts), "the wording changes too, or a near-copy could never be repaired"
    assert VIOLATES["invented_award"](text_of(server.ask(facts)), facts), "the rule still holds for first tries"


def test_a_stubborn_invention_is_repeated(server: Model) -> None:
    facts = sheet(FAREWELL)
    rule = {"endpoint": "llm", "fault": "invented_link", "stubborn": True}
    answer = CLIENT.post(f"{server.base}/control/faults", json=rule)
    assert answer.json()["rules"][0]["stubborn"] is True
    for violations in ((), ("有网址",)):
        assert VIOLATES["invented_link"](text_of(server.ask(facts, *violations)), facts)


def test_a_known_share_invents_and_always_the_same_films(server: Model) -> None:
    server.invent = inventing(0.3, ("invented_award", "invented_link"), stubborn=0.5)
    facts = [sheet(subject) for subject in SUBJECTS[:60]]

    def wrong(*violations: str) -> set[int]:
        texts = [text_of(server.ask(one, *violations)) for one in facts]
        kinds = ("invented_award", "invented_link")
        return {place for place, text in enumerate(texts) if any(VIOLATES[kind](text, {}) for kind in kinds)}

    first, again, named = wrong(), wrong(), wrong("有问题")
    assert first == again
    assert 10 <= len(first) <= 26
    assert named < first
    assert named


def test_the_share_is_what_was_asked_for() -> None:
    for share in (0.0, 0.2, 1.0):
        invent = inventing(share)
        chosen = [invent(1, {"title": f"片{number}", "year": 2000}) for number in range(500)]
        assert abs(sum(rule is not None for rule in chosen) / 500 - share) < 0.06
        if share:
            assert {rule.fault for rule in chosen if rule} == set(INVENTIONS)


@pytest.mark.parametrize(
    ("endpoint", "fault"),
    [
        *((endpoint, "unpaid") for endpoint in ENDPOINTS if endpoint not in ("llm", "reading")),
        *((endpoint, "invented_name") for endpoint in ENDPOINTS if endpoint != "llm"),
    ],
)
def test_only_the_model_has_the_models_faults(endpoint: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Fault(endpoint, fault)


@pytest.mark.parametrize(
    ("fault", "status", "metadata"),
    [
        ("unpaid", 402, {"limit_source": "openrouter_credits"}),
        ("key_spent", 402, {"limit_source": "openrouter_key_limit"}),
        ("in_flight", 402, {"limit_source": "openrouter_in_flight_budget", "reason": "in_flight_budget_exhausted"}),
        ("too_heavy", 402, {"limit_source": "openrouter_credits", "reason": "weight_exceeds_budget"}),
        ("budget_spent", 403, {"limit_source": "openrouter_workspace_budget"}),
        ("forbidden", 403, {"reasons": ["violence"]}),
        ("request_timeout", 408, {}),
        ("no_provider", 503, {}),
        ("rejected", 400, {"error_type": "invalid_request"}),
        ("throttled", 429, {"error_type": "rate_limit_exceeded"}),
        ("server_error", 502, {"error_type": "provider_unavailable"}),
    ],
)
def test_errors_have_openrouters_form(server: Model, fault: str, status: int, metadata: dict[str, Any]) -> None:
    server.faults.add("llm", fault, times=1, retry_after=9)
    answer = server.ask(sheet(FAREWELL))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, status)
    assert metadata.items() <= error.get("metadata", {}).items()
    waits = fault in ("in_flight", "throttled", "no_provider")
    assert answer.headers.get("retry-after") == ("9" if waits else None)


def test_answers_that_cannot_be_used_cost_money_all_the_same(server: Model) -> None:
    for fault in ("cut_off", "refused", "empty", "garbage"):
        server.faults.add("llm", fault, times=1)
        answer = server.ask(sheet(FAREWELL))
        assert answer.status_code == 200
        assert answer.json()["usage"]["cost"] > 0
    server.faults.add("llm", "cut_off", times=1)
    assert server.ask(sheet(FAREWELL)).json()["choices"][0]["finish_reason"] == "length"


def test_every_fault_of_the_model_is_distinguished_from_an_introduction(server: Model) -> None:
    for fault in MODEL_FAULTS:
        server.faults.add("llm", fault, times=1)
        answer = server.ask(sheet(FAREWELL))
        usable = answer.status_code == 200 and answer.json()["choices"][0]["message"]["content"].endswith("}")
        assert not usable, fault
    assert text_of(server.ask(sheet(FAREWELL))) == introduction(sheet(FAREWELL))
