"""A wrong setting stops at the start and says which, what it is, and what it may be."""

from __future__ import annotations

import inspect
import os
import traceback
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from douban_pipeline.core.http import Fetcher
from douban_pipeline.core.llm import SOURCE as LLM
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline.douban.evidence.posters import SOURCE as POSTERS
from douban_pipeline.douban.intros.attempts import OTHER_MINUTES, THROTTLED_MINUTES, UNAVAILABLE_MINUTES
from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.pace import PLAN_TIERS, Tiers
from douban_pipeline.douban.setting_values import CHAIN, DEFAULT_FIELD_POLICIES, SEARCH_PROVIDERS, SOURCES
from douban_pipeline.douban.settings import RETRY_SECONDS, Settings, load_settings
from douban_pipeline.douban.sources.douban_php import SOURCE as DOUBAN
from douban_pipeline.douban.sources.search_providers import PROVIDERS
from douban_pipeline.douban.wording import SOURCE_NAMES
from douban_pipeline.matching.profiles import PLAN, make_profile
from douban_pipeline.matching.weights import Thresholds, Weights

P = "DOUBAN_PIPELINE_"


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch, tmp_path):
    for variable in list(os.environ):
        if variable.upper().startswith(P):
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def refusal(monkeypatch):
    """Return the message with which the settings are refused."""

    def load(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(P + name, value)
        with pytest.raises(SettingsError) as caught:
            load_settings()
        return str(caught.value)

    return load


def test_nothing_needs_to_be_set():
    settings = load_settings()
    assert settings.dry_run is True
    assert settings.table_prefix == "mac_"
    assert settings.library_url.startswith("sqlite:///")
    assert settings.library_url.endswith("/.douban_pipeline/demo/library.sqlite")
    assert settings.policies == DEFAULT_FIELD_POLICIES
    assert str(settings.zone) == "Asia/Shanghai"
    assert settings.search_cache_age == timedelta(days=14)
    assert settings.lease == timedelta(seconds=640)


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("TABLE_PREFIX", "mac-vod; DROP", "letters, digits and underscores, at most 20"),
        ("TABLE_PREFIX", "m" * 21, "letters, digits and underscores, at most 20"),
        ("SITE_TIMEZONE", "Peking", "an IANA time zone such as Asia/Shanghai"),
        ("SITE_TIMEZONE", "../../etc/passwd", "an IANA time zone"),
        ("SEARCH_PROVIDER", "google", "searxng, douban_suggest, bocha or chain"),
        ("DOUBAN_URL", "douban.php", "an address such as http://127.0.0.1:8790/douban.php"),
        ("DOUBAN_URL", "ftp://127.0.0.1/douban.php", "an address such as"),
        ("SEARCH_URL", "http://", "an address such as http://127.0.0.1:8080/search"),
        ("DOUBAN_REQUESTS_PER_MINUTE", "0", "a whole number from 1 to 60000"),
        ("DOUBAN_REQUESTS_PER_MINUTE", "thirty", "a whole number from 1 to 60000"),
        ("SEARCH_REQUESTS_PER_MINUTE", "1.5", "a whole number from 1 to 60000"),
        ("DOUBAN_CONCURRENCY", "65", "a whole number from 0 to 64"),
        ("SEARCH_CONCURRENCY", "", "a whole number from 0 to 64"),
        ("REQUEST_TIMEOUT_SECONDS", "0", "a number above 0 to 120"),
        ("SEARCH_CACHE_DAYS", "31", "a whole number from 7 to 30"),
        ("TOP_N", "0", "a whole number from 1 to 20"),
        ("CONFIRM_SCORE", "101", "a number from 0 to 100"),
        ("MATCH_PROFILE", "strict", "plan or calibrated"),
        ("SCORE_WEIGHTS", "director", "item=points pairs"),
        ("SCORE_WEIGHTS", "director=many", "points from 0, e.g. director=14,actors=6"),
        ("SCORE_WEIGHTS", "actors=-1", "points from 0"),
        ("SCORE_WEIGHTS", "actors=nan", "points from 0"),
        ("SCORE_WEIGHTS", "poster=5", "items: title, year, region, director, actors, genre, length, tie_break"),
        ("BATCH_SIZE", "2001", "a whole number from 1 to 2000"),
        ("DRY_RUN", "maybe", "true or false"),
        ("RESPECT_VOD_LOCK", "perhaps", "true or false"),
        ("EXCLUDED_TYPE_IDS", "20,伦理片", "category ids (mac_type.type_id) separated by commas"),
        ("INCLUDED_TYPE_IDS", "-1", "category ids (mac_type.type_id) separated by commas; empty means all"),
        ("SEARCH_CHAIN", "google", "providers: searxng, douban_suggest, bocha"),
        ("SEARCH_CHAIN", "searxng,searxng=http://127.0.0.1/search", "a provider is named twice"),
        ("SEARCH_CHAIN", "searxng=ftp://127.0.0.1/search", "not an http:// or https:// address"),
        ("SEARCH_CHAIN", ",", "providers in the order queried"),
        ("DAILY_QUOTAS", "bocha=0", "calls from 1, e.g. bocha=1000"),
        ("DAILY_QUOTAS", "bocha=many", "calls that are not whole numbers"),
        ("DAILY_QUOTAS", "google=5", "sources: douban, searxng, douban_suggest, bocha, openrouter"),
        ("LLM_URL", "openrouter.ai", "an address such as https://openrouter.ai/api/v1/chat/completions"),
        ("LLM_BUDGET_USD_PER_DAY", "-1", "a number from 0 to 10000"),
        ("INTRO_MIN_HAN", "10", "a whole number from 20 to 2000"),
        ("ALERT_WEBHOOK_KIND", "slack", "generic"),
        ("FIELD_POLICIES", "vod_name=sometimes", "policy is never, fill or overwrite"),
        ("FIELD_POLICIES", "vod_play_url=overwrite", "columns: vod_name"),
        ("FIELD_POLICIES", "vod_name", "column=policy pairs"),
        ("BACK_OFF_MINUTES", "", "no number of minutes is given"),
        ("BACK_OFF_MINUTES", "30,10", "none shorter than the one before, e.g. 10,30,120,360,1440"),
        ("BACK_OFF_MINUTES", "0,10", "above 0 and at most 43200"),
        ("BACK_OFF_MINUTES", "ten", "not a list of numbers"),
        ("DUE_INTERVAL_SECONDS", "3601", "a whole number from 0 to 3600"),
        ("VISIT_TIERS", "30=3,180=7", "older is missing"),
        ("VISIT_TIERS", "30=0,older=90", "above 0 and at most 3650"),
        ("VISIT_TIERS", "month=3,older=90", "e.g. 30=3,180=7,365=30,730=60,older=90"),
        ("ACTIVE_HOURS", "25", "an hour after 23"),
        ("ACTIVE_HOURS", "6-6", "an empty range"),
        ("ACTIVE_HOURS", "night", "hours from 0 to 24 in the site's time zone"),
        ("SYNC_LOCKED_IDS", "some", "true or false"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(refusal, variable, value, allowed):
    message = refusal(**{variable: value})
    assert f"{P}{variable} = " in message
    shown = "sometimes" if "sometimes" in value else value
    assert shown in message
    assert allowed in message
    assert len(message.splitlines()) == 2, "one line a mistake"


@pytest.mark.parametrize(
    ("given", "step"),
    [
        ({}, 320),  # 240 s, 60 s of retries and a request of 20 s
        ({"run_seconds": 1500}, 1580),
        ({"request_timeout_seconds": 120}, 420),
        ({"request_timeout_seconds": 0.5}, 301),
        ({"ai_intros": True}, 390),  # a call of the language model takes 90 s
        ({"ai_intros": True, "request_timeout_seconds": 100, "run_seconds": 1500}, 1660),
    ],
)
def test_a_lease_lasts_twice_as_long_as_the_longest_step(monkeypatch, given, step):
    monkeypatch.setenv("OPENROUTER_API_KEY", "key")
    assert inspect.signature(Fetcher).parameters["total_time"].default == RETRY_SECONDS
    settings = load_settings(**given)
    assert (settings.longest_step.total_seconds(), settings.lease.total_seconds()) == (step, 2 * step)


def test_every_mistake_is_reported_at_once(refusal):
    message = refusal(TOP_N="99", BATCH_SIZE="no", SITE_TIMEZONE="Mars", TOP="5")
    assert len(message.splitlines()) == 1 + 4
    assert all(name in message for name in ("TOP_N = '99'", "BATCH_SIZE = 'no'", "SITE_TIMEZONE = 'Mars'", "TOP is no"))


@pytest.mark.parametrize(
    "url", ["postgresql://site:geheim@db/maccms", "site:geheim@db", "mysql+pymysql//site:geheim@db", "geheim"]
)
def test_a_password_is_never_shown(refusal, monkeypatch, url):
    message = refusal(DATABASE_URL=url)
    assert f"{P}DATABASE_URL is not usable" in message
    assert "mysql+pymysql://user:password@host:3306/database" in message
    assert "geheim" not in message
    assert not url.startswith("postgresql") or f"{P}DATABASE_URL is not usable: it names 'postgresql'" in message
    monkeypatch.setenv(P + "DATABASE_URL", url)
    try:
        load_settings()
    except SettingsError:
        assert "geheim" not in traceback.format_exc()


def test_a_right_password_is_used_and_never_shown(monkeypatch):
    url = "mysql+pymysql://site:geheim@db:3307/maccms"
    monkeypatch.setenv(P + "DATABASE_URL", url)
    settings = load_settings()
    assert settings.library_url == url
    assert settings.shown_library_url == "mysql+pymysql://site:***@db:3307/maccms"
    for shown in (repr(settings), str(settings), settings.model_dump_json(), str(settings.model_dump())):
        assert "geheim" not in shown
        assert "db:3307" not in shown


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("DATABASE_URI", f"; did you mean {P}DATABASE_URL?"),
        ("EXCLUDE_TYPE_IDS", f"; did you mean {P}EXCLUDED_TYPE_IDS?"),
        ("DRYRUN", f"; did you mean {P}DRY_RUN?"),
        ("douban_rpm", ""),
        ("TIMEZONE_SITE", f"; did you mean {P}SITE_TIMEZONE?"),
        ("TIMEZONE", f"; did you mean {P}SITE_TIMEZONE?"),
        ("REQUESTS_PER_MINUTE_DOUBAN", f"; did you mean {P}DOUBAN_REQUESTS_PER_MINUTE?"),
        ("LANGUGE", f"; did you mean {P}LANGUAGE?"),
        ("XYZ", ""),
    ],
)
def test_a_variable_that_is_no_setting_is_an_error_with_a_hint(refusal, variable, hint):
    assert f"{P}{variable} is not a setting{hint}" in refusal(**{variable: "x"})


def test_variables_of_others_are_not_ours(monkeypatch):
    monkeypatch.setenv("DOUBAN_TEST_MARIADB_URL", "x")
    monkeypatch.setenv("DAGSTER_HOME", "/nowhere")
    assert load_settings().top_n == 5


def test_the_env_file_is_read_and_the_environment_wins(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text(
        f"# 站点\n{P}TOP_N=7\n{P}BATCH_SIZE=20\nOTHER=1\n{P}EXCLUDED_TYPE_IDS=20,24\n{P}SITE_TIMEZONE='Asia/Tokyo'\n",
        encoding="utf-8",
    )
    monkeypatch.setenv(P + "BATCH_SIZE", "30")
    settings = load_settings(top_n=9)
    assert (settings.top_n, settings.batch_size, settings.excluded_type_ids) == (9, 30, {20, 24})
    assert load_settings().top_n == 7
    assert str(settings.zone) == "Asia/Tokyo"


def test_a_mistake_in_the_env_file_is_reported_just_so(refusal, tmp_path):
    (tmp_path / ".env").write_text(f"{P}TOP_NN=7\n{P}TOP_N=seven\n", encoding="utf-8")
    message = refusal()
    assert f"{P}TOP_NN is not a setting; did you mean {P}TOP_N?" in message
    assert f"{P}TOP_N = 'seven' is not allowed" in message


@pytest.mark.parametrize("source", ["DOUBAN", "SEARCH"])
@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://127.0.0.1:8790/x", True),
        ("http://127.8.9.1/x", True),
        ("http://localhost/x", True),
        ("http://[::1]:80/x", True),
        ("https://api.example.org/x", False),
        ("http://127.0.0.1.example.org/x", False),
        ("http://localhost.example.org/x", False),
        ("http://10.0.0.5/x", False),
        ("http://[2001:db8::1]/x", False),
    ],
)
def test_more_than_a_public_source_allows_is_for_this_machine_alone(refusal, monkeypatch, source, url, loopback):
    monkeypatch.setenv(f"{P}{source}_URL", url)
    monkeypatch.setenv(f"{P}{source}_REQUESTS_PER_MINUTE", "60")
    assert getattr(load_settings(), f"{source.lower()}_requests_per_minute") == 60
    if loopback:
        monkeypatch.setenv(f"{P}{source}_REQUESTS_PER_MINUTE", "60000")
        assert getattr(load_settings(), f"{source.lower()}_requests_per_minute") == 60_000
    else:
        message = refusal(**{f"{source}_REQUESTS_PER_MINUTE": "61"})
        assert f"{P}{source}_REQUESTS_PER_MINUTE = '61' is not allowed: 1 to 60 for a source outside" in message


def test_a_review_score_above_the_confirm_score_makes_no_sense(refusal):
    message = refusal(REVIEW_SCORE="90", CONFIRM_SCORE="85")
    assert f"{P}REVIEW_SCORE = '90.0' is not allowed: at most {P}CONFIRM_SCORE, which is 85" in message


@pytest.mark.parametrize(
    ("value", "ids"),
    [("", set()), ("20", {20}), (" 20, 31 ,", {20, 31}), ("20，31", {20, 31}), ("007", {7})],
)
def test_category_ids_are_a_comma_list(monkeypatch, value, ids):
    monkeypatch.setenv(P + "INCLUDED_TYPE_IDS", value)
    assert load_settings().included_type_ids == ids


def test_field_policies_override_one_by_one(monkeypatch):
    monkeypatch.setenv(P + "FIELD_POLICIES", "vod_content=never, vod_score=overwrite")
    assert load_settings().policies == DEFAULT_FIELD_POLICIES | {"vod_content": "never", "vod_score": "overwrite"}


def test_tiers_and_waits_are_the_plans_and_may_be_others(monkeypatch):
    settings = load_settings()
    assert settings.tiers == PLAN_TIERS
    assert [step / timedelta(minutes=1) for step in settings.back_off.steps] == [10, 30, 120, 360, 1440]
    assert (THROTTLED_MINUTES, UNAVAILABLE_MINUTES, OTHER_MINUTES) == ((10, 30), (5, 10), (30, 120))
    monkeypatch.setenv(P + "VISIT_TIERS", "7=1, older = 10")
    monkeypatch.setenv(P + "BACK_OFF_MINUTES", "1,1.5，60")
    settings = load_settings()
    assert settings.tiers == Tiers.of_days({7: 1}, older=10)
    assert [step / timedelta(minutes=1) for step in settings.back_off.steps] == [1, 1.5, 60]


@pytest.mark.parametrize(
    ("value", "hours"),
    [
        ("", set()),
        ("9", {9}),
        ("1-4, 22-24", {1, 2, 3, 22, 23}),
        ("22-3", {22, 23, 0, 1, 2}),
        ("0-24", set(range(24))),
    ],
)
def test_active_hours_are_ranges_of_the_sites_day(monkeypatch, value, hours):
    monkeypatch.setenv(P + "ACTIVE_HOURS", value)
    settings = load_settings()
    assert settings.active_hours == hours
    for hour in range(24):
        moment = datetime(2026, 3, 1, hour, 59, tzinfo=settings.zone)
        assert settings.works_at(moment.astimezone(UTC)) is (not hours or hour in hours)


def test_who_may_unlock_in_bulk_is_a_list_of_names(monkeypatch):
    assert load_settings().bulk_unlockers == ()
    monkeypatch.setenv(P + "BULK_UNLOCKERS", "小王， 老李 ,")
    assert load_settings().bulk_unlockers == ("小王", "老李")


def test_settings_cannot_change_under_way():
    with pytest.raises(ValueError, match="frozen"):
        load_settings().top_n = 3


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_says_what_it_is(name):
    assert Settings.model_fields[name].description


def test_weights_are_overridden_one_by_one(monkeypatch):
    monkeypatch.setenv(P + "SCORE_WEIGHTS", " director = 14，actors=6.5, ")
    settings = load_settings()
    assert settings.score_weights == {"director": 14.0, "actors": 6.5}
    assert settings.weights == Weights(director=14.0, actors=6.5)
    assert load_settings(score_weights={"director": 1}).weights == Weights(director=1.0)


def test_weights_that_could_never_confirm_are_a_mistake(refusal):
    message = refusal(MATCH_PROFILE="plan", SCORE_WEIGHTS="title=10")
    assert (
        "SCORE_WEIGHTS = 'title=10' is not allowed: points with a sum of at least DOUBAN_PIPELINE_CONFIRM_SCORE"
        in message
    )
    assert "the sum is 65" in message
    # A share is what counts in the other profile, whatever the points sum up to.
    assert load_settings(match_profile="calibrated").weights.total == 65


def test_the_profile_in_force_is_made_of_the_settings():
    profile = profile_of(
        load_settings(match_profile="calibrated", score_weights="year=20", confirm_score=90, lead_score=9)
    )
    assert (profile.name, profile.weights) == ("calibrated", Weights(year=20.0))
    assert profile.thresholds == Thresholds(confirm=90.0, lead=9.0)
    assert profile_of(load_settings(match_profile="plan")) == PLAN
    assert profile_of(load_settings()) == make_profile("calibrated"), "the default"


def test_a_chain_keeps_its_order_and_knows_public_addresses(monkeypatch):
    monkeypatch.setenv(f"{P}SEARCH_PROVIDER", "chain")
    monkeypatch.setenv(f"{P}SEARCH_CHAIN", "bocha, searxng=http://127.0.0.1:8080/search?a=b，douban_suggest")
    monkeypatch.setenv("BOCHA_API_KEY", "sk-1")
    assert load_settings().search_urls == {
        "bocha": "https://api.bochaai.com/v1/web-search",
        "searxng": "http://127.0.0.1:8080/search?a=b",
        "douban_suggest": "https://movie.douban.com/j/subject_suggest",
    }


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"AI_INTROS": "true"}, "OPENROUTER_API_KEY is not set, but DOUBAN_PIPELINE_AI_INTROS = true needs it"),
        ({"SEARCH_PROVIDER": "bocha"}, "BOCHA_API_KEY is not set, but the search provider bocha needs it"),
        (
            {"EVIDENCE_FROM_TMDB": "true"},
            "DOUBAN_PIPELINE_TMDB_DATABASE_URL is not set, but DOUBAN_PIPELINE_EVIDENCE_FROM_TMDB = true needs it",
        ),
        (
            {"EVIDENCE_FROM_TMDB": "true", "TMDB_DATABASE_URL": "mysql://127.0.0.1/x"},
            "DOUBAN_PIPELINE_TMDB_DATABASE_URL names 'mysql'; expected postgresql",
        ),
        ({"INTRO_MIN_HAN": "310"}, "INTRO_MIN_HAN = '310' is not allowed: at most DOUBAN_PIPELINE_INTRO_MAX_HAN"),
    ],
)
def test_what_one_setting_needs_of_another_is_said(refusal, monkeypatch, variables, said):
    for key in ("OPENROUTER_API_KEY", "BOCHA_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    assert said in refusal(**variables)


def test_keys_come_from_variables_of_their_own_and_are_never_reported(monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-secret")
    monkeypatch.setenv(f"{P}ALERT_WEBHOOK_URL", "https://example.org/send?key=secret")
    settings = load_settings()
    assert settings.openrouter_api_key.get_secret_value() == "sk-or-secret"
    assert "sk-or-secret" not in repr(settings) + str(settings)
    assert "key=secret" not in repr(settings) + str(settings)


def test_a_wrong_webhook_is_refused_without_telling_it(refusal):
    reported = refusal(ALERT_WEBHOOK_URL="example.org/send?key=secret")
    assert "DOUBAN_PIPELINE_ALERT_WEBHOOK_URL is not usable" in reported
    assert "secret" not in reported


def test_every_source_is_known_wherever_sources_are_named():
    allowed = get_args(Settings.model_fields["search_provider"].annotation)
    assert set(SEARCH_PROVIDERS) == set(PROVIDERS) == set(allowed) - {CHAIN}
    assert set(SOURCES) == {DOUBAN, LLM, POSTERS, *PROVIDERS} == set(SOURCE_NAMES)
