"""Pictures asked for over real HTTP, through the gate: what servers of posters may answer, and what is made of it."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from PIL import Image

from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.douban.evidence import posters as module
from douban_pipeline.douban.evidence.picture_prints import MOST_PIXELS, print_of
from douban_pipeline.douban.evidence.posters import MOST_BYTES, SOURCE, Posters
from douban_pipeline_tests.douban.evidence.made_posters import CHANGES, jpeg, poster
from douban_pipeline_tests.harness.fixtures.scripted_source import Say, Source

PICTURE = poster(1)
COPY = CHANGES["recompressed"](PICTURE)
SIDE = int(MOST_PIXELS**0.5) + 1


@pytest.fixture
def site() -> Iterator[Source]:
    scripted = Source()
    yield scripted
    scripted.close()


@pytest.fixture
def inside() -> Iterator[Source]:
    """A server of the private network, which has the very picture."""
    scripted = Source()
    scripted.says(jpeg(PICTURE))
    yield scripted
    scripted.close()


@pytest.fixture
def services(sqlite_library, site: Source):
    return sqlite_library.renewed(evidence_from_posters=True, site_url=site.url.rpartition("/")[0]).services


def seen(services, site: Source, answer: Say | bytes) -> Posters:
    """Return who compares posters, when the site answers so to the one request of the video's."""
    site.says(answer)
    found = services.posters
    assert found is not None
    assert found.same(1, "/upload/1.jpg", []) == ()
    assert [path for path, _ in site.asked] == ["/upload/1.jpg"], "once, whatever came"
    return found


def kept(services) -> list[str]:
    with services.engine.connect() as connection:
        return list(connection.execute(sa.select(services.tables.poster.c.hashes)).scalars())


def bomb() -> bytes:
    """Return a small file that unpacks to more than is taken."""
    file = io.BytesIO()
    Image.new("1", (SIDE, SIDE)).save(file, "PNG", optimize=True)
    assert len(file.getvalue()) < MOST_BYTES / 50
    return file.getvalue()


def test_the_sites_own_picture_is_taken(services, site: Source) -> None:
    seen(services, site, Say(jpeg(PICTURE), headers={"Content-Type": "image/jpeg"}))
    [text] = kept(services)
    whole = print_of(COPY)
    assert whole is not None
    assert whole.is_copy(module.Print.of_text(text))


def test_a_redirect_into_the_private_network_is_refused(services, site: Source, inside: Source) -> None:
    seen(services, site, Say(status=302, headers={"Location": inside.url}))
    assert inside.asked == []
    assert kept(services) == []


def test_a_picture_beyond_the_bound_is_refused(services, site: Source) -> None:
    seen(services, site, Say(jpeg(PICTURE) + b"0" * MOST_BYTES))
    assert kept(services) == []


def test_a_decompression_bomb_is_no_picture(services, site: Source) -> None:
    found = seen(services, site, Say(bomb(), headers={"Content-Type": "image/png"}))
    assert kept(services) == [""], "known for nothing, so that it is not asked for each time"
    assert found.same(1, "/upload/1.jpg", []) == ()
    assert len(site.asked) == 1


@pytest.mark.parametrize("slow", [Say(hang=True), Say(jpeg(PICTURE)[:100], drip=True)], ids=["silent", "dripping"])
def test_a_slow_server_is_given_up(services, site: Source, slow: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.3)
    seen(services, site, slow)
    assert kept(services) == []


def test_a_server_that_refuses_pictures_closes_nobody_elses_way(services, site: Source) -> None:
    found = seen(services, site, Say(status=403))
    [status] = [each for each in services.gate.status() if each.source == SOURCE]
    assert status.state is GateState.CLOSED
    site.says(jpeg(PICTURE))
    assert found.same(2, "/upload/2.jpg", []) == ()
    assert len(list(filter(None, kept(services)))) == 1
