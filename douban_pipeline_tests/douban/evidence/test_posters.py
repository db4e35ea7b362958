"""A poster that is the candidate's is one fact more: looked at where a person would have to, never enough alone."""

from __future__ import annotations

import httpx
import pytest
import sqlalchemy as sa

from douban_pipeline.core.errors import PrivateAddress, SourceUnavailable
from douban_pipeline.douban import source_settings
from douban_pipeline.douban.chain.match.found_candidates import FoundCandidates
from douban_pipeline.douban.evidence import posters as module
from douban_pipeline.douban.evidence.picture_prints import Print, print_of
from douban_pipeline.douban.evidence.posters import MOST_SHARED, Posters
from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.quality.library_replay import judge_again
from douban_pipeline.douban.quality.stored_verdicts import RescoreSelection, StoredVerdicts
from douban_pipeline.matching import Code, Status, Subject, Video, judge, make_profile
from douban_pipeline_tests.douban.evidence.made_posters import CHANGES, jpeg, poster
from douban_pipeline_tests.harness.fixtures.library import GivenSettings
from douban_pipeline_tests.harness.fixtures.scenario import row_of, subject

CALIBRATED = make_profile("calibrated")
IMAGES = "https://images.example"


class Servers:
    """Servers of pictures, by address."""

    def __init__(self, **pictures: bytes) -> None:
        self.pictures = {f"{IMAGES}/{name}": body for name, body in pictures.items()}
        self.asked: list[str] = []

    def fetch(self, _posters: Posters, address: str) -> Print | None:
        self.asked.append(address)
        if address not in self.pictures:
            raise SourceUnavailable("posters", "away")
        return print_of(self.pictures[address])


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    own, other = poster(1), poster(2)
    given = Servers(a=jpeg(own), copy=CHANGES["recompressed"](own), b=jpeg(other), page=b"<html>")
    monkeypatch.setattr(Posters, "_fetch", lambda posters, address: given.fetch(posters, address))
    return given


@pytest.fixture
def posters(sqlite_library, servers: Servers) -> Posters:
    services = sqlite_library.renewed().services
    return Posters(None, services.engine, services.tables, services.clock, "")  # type: ignore[arg-type]


def test_a_copy_agrees_and_anything_else_is_unknown(posters: Posters) -> None:
    own = f"{IMAGES}/copy"
    assert posters.same(1, own, [(7, f"{IMAGES}/b"), (8, f"{IMAGES}/a")]) == (8,)
    assert posters.same(1, own, [(7, f"{IMAGES}/b")]) == ()
    assert posters.same(1, own, [(9, f"{IMAGES}/away"), (10, f"{IMAGES}/page"), (11, "")]) == ()
    for picture in ("", f"{IMAGES}/page", f"{IMAGES}/away", "upload/1.jpg", "javascript:alert(1)"):
        assert posters.same(2, picture, [(8, f"{IMAGES}/a")]) == (), picture


def test_hashes_are_kept_and_not_asked_for_again(posters: Posters, servers: Servers) -> None:
    for _ in range(2):
        assert posters.same(1, f"{IMAGES}/copy", [(8, f"{IMAGES}/a"), (9, f"{IMAGES}/page")]) == (8,)
    assert sorted(servers.asked) == [f"{IMAGES}/{name}" for name in ("a", "copy", "page")]
    assert posters.same(1, f"{IMAGES}/b", [(8, f"{IMAGES}/a")]) == (), "another picture by now"


def test_a_picture_of_two_candidates_tells_neither(posters: Posters) -> None:
    assert posters.same(1, f"{IMAGES}/copy", [(7, f"{IMAGES}/a"), (8, f"{IMAGES}/copy")]) == ()


def test_a_picture_of_two_subjects_is_no_evidence_either_when_they_meet_no_more(posters: Posters) -> None:
    assert posters.same(1, f"{IMAGES}/copy", [(7, f"{IMAGES}/a"), (8, f"{IMAGES}/a")]) == ()
    assert posters.same(1, f"{IMAGES}/copy", [(8, f"{IMAGES}/a")]) == ()


def test_a_picture_that_many_videos_bear_is_a_placeholder(posters: Posters) -> None:
    said = [posters.same(vod_id, f"{IMAGES}/a", [(8, f"{IMAGES}/copy")]) for vod_id in range(1, MOST_SHARED + 2)]
    assert said == [(8,)] * MOST_SHARED + [()]


def test_doubans_own_placeholder_is_nobodys(posters: Posters, servers: Servers) -> None:
    servers.pictures[f"{IMAGES}/movie_default_large.png"] = servers.pictures[f"{IMAGES}/a"]
    assert posters.same(1, f"{IMAGES}/a", [(8, f"{IMAGES}/movie_default_large.png")]) == ()


def test_private_addresses_are_refused_but_for_the_sites_own(sqlite_library) -> None:
    services = sqlite_library.renewed().services
    fetcher = module.open_fetcher(services.gate, services.clock, "http://127.0.0.1:9")
    try:
        admit = fetcher._transport._admit
        admit(httpx.URL("http://127.0.0.1:9/upload/1.jpg"), None)
        for address in ("http://127.0.0.1:10/x.jpg", "http://10.0.0.1/x.jpg", "file:///etc/passwd"):
            with pytest.raises(PrivateAddress):
                admit(httpx.URL(address), None)
    finally:
        fetcher.close()


FOG = Subject(8, "雾都", year=2020, regions=("英国",))


@pytest.mark.parametrize(
    ("video", "without", "with_poster"),
    [
        (Video(1, "雾都", year=2020, regions=("英国",)), Status.REVIEW, Status.CONFIRMED),
        (Video(1, "雾都", regions=("英国",)), Status.REVIEW, Status.REVIEW),
        (Video(1, "雾都", year=2020), Status.REVIEW, Status.REVIEW),
        (Video(1, "伦敦之夜", year=2020, regions=("英国",)), Status.NOT_FOUND, Status.NOT_FOUND),
        (Video(1, "雾都", year=2009, regions=("英国",)), Status.NOT_FOUND, Status.NOT_FOUND),
        (Video(1, "雾都 第二季", year=2020, regions=("英国",)), Status.REVIEW, Status.REVIEW),
    ],
    ids=["one fact short", "no year", "nothing else", "another name", "another year", "another season"],
)
def test_a_poster_is_one_fact_more_and_never_enough(video: Video, without: Status, with_poster: Status) -> None:
    assert judge(video, [FOG], profile=CALIBRATED).status is without
    verdict = judge(video, [FOG], profile=CALIBRATED, posters=(8,))
    assert verdict.status is with_poster
    assert ("海报相同" in verdict.explanation) == (with_poster is not Status.NOT_FOUND or "得分" in verdict.explanation)


def test_what_the_task_carries_on_is_read_back() -> None:
    found = FoundCandidates((), (), False, (), 0, posters=(8,))
    assert FoundCandidates.from_payload(found.to_payload()) == found
    assert FoundCandidates.from_payload({"subjects": [], "snapshots": [], "requests": 0}).posters == ()


def test_a_thin_row_is_confirmed_with_its_poster(stage, servers: Servers) -> None:
    entry = subject(90_000_181, "雾都", 2020, picture=f"{IMAGES}/a", kind="movie", genres=["悬疑"], duration_min=None)
    thin = {"vod_actor": "", "vod_director": "", "vod_class": "", "vod_pic": f"{IMAGES}/copy", "type_id": 99}
    row = row_of(entry, 4, **thin)
    without = stage([row], [entry])
    without.play()
    [verdict] = without.verdicts(4)
    assert (verdict["verdict"], servers.asked) == ("REVIEW", [])
    assert {Code.UNCORROBORATED} == set(verdict["reasons"])

    scenario = stage([row], [entry], evidence_from_posters=True)
    run = scenario.play()
    [verdict] = scenario.verdicts(4)
    assert (verdict["verdict"], verdict["facts"]["posters"]) == ("CONFIRMED", [90_000_181])
    assert "海报相同" in verdict["explanation"]
    assert run.metadata("search_candidates")["with_posters"] == 1
    # Judged again without any picture: what was found is with the verdict.
    services = scenario.services
    [[stored]] = StoredVerdicts(services, RescoreSelection()).batches()
    again = judge_again(stored, profile_of(services.settings))
    assert (again.status, again.explanation) == ("CONFIRMED", verdict["explanation"])
    with services.engine.connect() as connection:
        kept = connection.execute(sa.select(services.tables.poster)).mappings().all()
    assert {row["owner"] for row in kept} == {"video:4", "subject:90000181"}


def test_the_setting_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_settings, "find_spec", lambda _name: None)
    with pytest.raises(ValueError, match=r"EVIDENCE_FROM_POSTERS = true needs a library: Pillow is not installed"):
        GivenSettings(evidence_from_posters=True)
    assert not GivenSettings().evidence_from_posters
