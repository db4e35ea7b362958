"""The pages ``/tmdb/``: search, card, way between two people; and their graph as JSON. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from psycopg import Error as PostgresError

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.ui.templates import render
from douban_pipeline.core.ui.tmdb_attribution import ATTRIBUTION, LINK
from douban_pipeline.tmdb.pages import cards, relations
from douban_pipeline.tmdb.pages.cards import Tile
from douban_pipeline.tmdb.pages.relations import Neighbour
from douban_pipeline.tmdb.store import by_name, credited
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.types import BIGGEST_ID, EntityKey, EntityType
from douban_pipeline.tmdb.values import id_of, text_of

FILES = {
    "tmdb.js": "text/javascript; charset=utf-8",
    "cytoscape.min.js": "text/javascript; charset=utf-8",
}
"""What pages load, by name, with its type."""
_LISTED = 30
_SUGGESTED = 6
_CO_ACTORS = 12
_OF_TITLES = "此人的资料没有存下，这里只有库里已存的影片和剧集所写的。"
_TOGETHER = 10
"""People without answers of their own whom one step of a way goes over, by the titles that name them."""

# Pictures are TMDB's own; nothing else of another host is loaded, and no script but ours and the drawing's runs.
_POLICY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; "
    f"img-src 'self' data: {cards.PICTURES}; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
}
_Words = Annotated[str, Query(max_length=100)]


class UnavailableError(Exception):
    """The store does not answer."""


@cache
def file(name: str) -> str:
    """Return a file that pages load."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")


@dataclass(frozen=True)
class TmdbPages:
    """Renders the pages from a store."""

    store: PostgresTmdbStore
    clock: Clock

    def search(self, words: str, most: int = _LISTED) -> list[Tile]:
        """Return what begins with ``words``, of each type ``most`` at most.

        Raises:
            UnavailableError: The store does not answer, or not in time.
        """
        try:
            with self.store.lookup() as connection:
                return [cards.tile_of(found) for found in by_name.by_beginning(connection, words, most)]
        except PostgresError as error:
            raise UnavailableError from error

    def suggestions(self, words: str) -> list[dict[str, str]]:
        """Return the first of them, for a list under the field while somebody types."""
        found = self.search(words, _SUGGESTED)
        return [{"address": each.address, "name": each.name, "note": each.note} for each in found]

    def home(self, words: str) -> str:
        """Return the page of a search; of nothing it says what can be searched for."""
        return self._page(
            "search.html.j2",
            title="TMDB",
            words=words,
            tiles=self.search(words) if words else [],
            counts=[] if words else self._counts(),
        )

    def card(self, key: EntityKey) -> str | None:
        """Return an entity's page; None if it is not stored."""
        found = self._answer(key)
        if found is None:
            return None
        fetched, raw = found
        near = relations.neighbours_of(key, raw)
        person = key.type is EntityType.PERSON
        together = relations.co_actors(key.tmdb_id, raw, self._raws, _CO_ACTORS) if person else []
        name = text_of(raw.get("title")) or text_of(raw.get("name")) or f"{cards.kind_of(key)} {key.tmdb_id}"
        path = raw.get("profile_path" if person else "poster_path")
        return self._page(
            "card.html.j2",
            title=name,
            badge=cards.kind_of(key),
            words="",
            key={"type": key.type.value, "id": key.tmdb_id},
            link=cards.link_of(key),
            picture=cards.picture_of(path, 342),
            facts=cards.facts_of(key, raw),
            text=_OF_TITLES
            if raw.get(credited.OF_TITLES)
            else text_of(raw.get("biography" if person else "overview")) or "",
            age=cards.age_of(fetched, self.clock.now()),
            near=[cards.tile_of(each) for each in near[:_LISTED]],
            left=max(0, len(near) - _LISTED),
            person=person,
            together=[
                (cards.tile_of(each.person), [cards.tile_of(title) for title in each.titles]) for each in together
            ],
            series=self._series(raw),
        )

    def graph(self, key: EntityKey) -> Mapping[str, Any] | None:
        """Return an entity and its neighbours as nodes and edges; None if it is not stored."""
        found = self._answer(key)
        if found is None:
            return None
        _, raw = found
        path = raw.get("profile_path") or raw.get("poster_path")
        name = text_of(raw.get("title")) or text_of(raw.get("name")) or str(key.tmdb_id)
        centre = Neighbour(key, name, picture=text_of(path) or "")
        near = relations.neighbours_of(key, raw)[: relations.SHOWN]
        return {
            "nodes": [_node(each) for each in (centre, *near)],
            "edges": [{"from": _id(key), "to": _id(each.key), "role": cards.tile_of(each).note} for each in near],
        }

    def way(self, one: str, other: str) -> str:
        """Return the page of the way between two people, named by how their names begin."""
        ends = [self._person(words) for words in (one, other)]
        way: Sequence[Neighbour] = []
        first, last = ends
        if first is not None and last is not None and first.key != last.key:
            way = relations.way_between(first, last, self._raws)
        return self._page(
            "way.html.j2",
            title="两人之间",
            words="",
            ends=[
                (words, None if end is None else cards.tile_of(end))
                for words, end in zip((one, other), ends, strict=True)
            ],
            same=first is not None and last is not None and first.key == last.key,
            way=[cards.tile_of(each) for each in way],
        )

    def _page(self, template: str, **values: Any) -> str:
        root = "../" if template == "card.html.j2" else "./"
        style = file("tmdb.css")
        sentence = {"sentence": ATTRIBUTION, "link": LINK, "logo": f"{root}logo.svg"}
        shared = {
            "badge": "",
            "about": "",
            "chapters": [],
            "lang": "zh-CN",
            "style": style,
            "tmdb": sentence,
            "root": root,
        }
        return render(__package__ or "", template, **{**shared, **values})

    def _answer(self, key: EntityKey) -> tuple[Any, Mapping[str, Any]] | None:
        try:
            found = self.store.dated_raws(key.type, [key.tmdb_id]).get(key.tmdb_id)
            if found is None and key.type is EntityType.PERSON:
                with self.store.lookup() as connection:
                    if (together := credited.person_of_titles(connection, key.tmdb_id)) is not None:
                        raw, fetched_at = together
                        return fetched_at, raw
            return found
        except PostgresError as error:
            raise UnavailableError from error

    def _raws(self, entity: EntityType, ids: Iterable[int]) -> Mapping[int, Mapping[str, Any]]:
        wanted = [*ids]
        try:
            found: dict[int, Mapping[str, Any]] = {**self.store.raws(entity, wanted)}
            if entity is EntityType.PERSON and (missing := [each for each in wanted if each not in found][:_TOGETHER]):
                with self.store.lookup() as connection:
                    for tmdb_id in missing:
                        if (together := credited.person_of_titles(connection, tmdb_id)) is not None:
                            found[tmdb_id] = together[0]
            return found
        except PostgresError as error:
            raise UnavailableError from error

    def _person(self, words: str) -> Neighbour | None:
        try:
            with self.store.lookup() as connection:
                found = by_name.by_beginning(connection, words, 1)
        except PostgresError as error:
            raise UnavailableError from error
        people = [each for each in found if each.key.type is EntityType.PERSON]
        return Neighbour(people[0].key, people[0].name, picture=people[0].picture) if people else None

    def _series(self, raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
        series = raw.get("belongs_to_collection")
        if not isinstance(series, Mapping) or (number := id_of(series.get("id"))) is None:
            return None
        try:
            with self.store.lookup() as connection:
                films = by_name.films_of_series(connection, number)
        except PostgresError as error:
            raise UnavailableError from error
        tiles = [cards.tile_of(each) for each in films]
        name = text_of(series.get("name")) or ""
        return {"name": name, "link": f"{LINK}collection/{number}", "tiles": tiles}

    def _counts(self) -> list[tuple[str, int]]:
        try:
            counts = self.store.row_counts()
        except PostgresError as error:
            raise UnavailableError from error
        return [(cards.kind_of(EntityKey(entity, 0)), found.full) for entity, found in counts.items()]


def _id(key: EntityKey) -> str:
    return f"{key.type.value}-{key.tmdb_id}"


def _node(each: Neighbour) -> dict[str, str]:
    tile = cards.tile_of(each)
    found = {"id": _id(each.key), "name": tile.name, "type": each.key.type.value, "address": tile.address}
    return {**found, "picture": tile.picture}


def pages_router(pages: TmdbPages) -> APIRouter:
    """Return the router of the pages."""
    router = APIRouter()

    def key_of(entity: EntityType, tmdb_id: int) -> EntityKey:
        if not 0 < tmdb_id <= BIGGEST_ID:
            raise HTTPException(404)
        return EntityKey(entity, tmdb_id)

    @router.get("/tmdb")
    def without_slash(request: Request) -> Response:
        return RedirectResponse(f"{request.scope['path']}/", 307)

    @router.get("/tmdb/")
    def home(q: _Words = "") -> Response:
        return _served(lambda: pages.home(q.strip()))

    @router.get("/tmdb/way")
    def way(one: _Words = "", other: _Words = "") -> Response:
        return _served(lambda: pages.way(one.strip(), other.strip()))

    @router.get("/tmdb/search.json")
    def suggestions(q: _Words = "") -> Response:
        try:
            return JSONResponse(pages.suggestions(q.strip()) if q.strip() else [])
        except UnavailableError:
            return JSONResponse({"error": "unavailable"}, 503)

    @router.get("/tmdb/graph/{entity}/{tmdb_id}.json")
    def graph(entity: EntityType, tmdb_id: int) -> Response:
        try:
            found = pages.graph(key_of(entity, tmdb_id))
        except UnavailableError:
            return JSONResponse({"error": "unavailable"}, 503)
        if found is None:
            raise HTTPException(404)
        return JSONResponse(found)

    @router.get("/tmdb/files/{name}")
    def loaded(name: str) -> Response:
        if name not in FILES:
            raise HTTPException(404)
        return Response(file(name), media_type=FILES[name], headers={"Cache-Control": "private, max-age=3600"})

    @router.get("/tmdb/{entity}/{tmdb_id}")
    def card(entity: EntityType, tmdb_id: int) -> Response:
        key = key_of(entity, tmdb_id)
        return _served(lambda: pages.card(key))

    return router


def _served(page: Callable[[], str | None]) -> Response:
    try:
        found = page()
    except UnavailableError:
        return HTMLResponse(
            "<!DOCTYPE html><html lang=zh-CN><title>TMDB</title><p>TMDB 的数据库暂时没有应答，请稍后刷新。</p>", 503
        )
    if found is None:
        raise HTTPException(404)
    return HTMLResponse(found, headers=_POLICY)
