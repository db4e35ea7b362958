"""The answer to a question as sentences, in the question's language, from TMDB's facts alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from douban_pipeline.core.language import Language, translated
from douban_pipeline.tmdb.enrichment.choice import LEAD, ScoredCandidate
from douban_pipeline.tmdb.enrichment.route import Asked, Intent, Role, Route
from douban_pipeline.tmdb.enrichment.transient import TransientGraph
from douban_pipeline.tmdb.projection import SHOWN
from douban_pipeline.tmdb.store.credited import OF_TITLES
from douban_pipeline.tmdb.types import LABELS, EntityKey, EntityType, NodeKey, Relation
from douban_pipeline.tmdb.values import day_of, id_of, items_of, number_of, text_of

_SHOWN = 8
_NAMESAKES = 3
_WRITERS = ("Screenplay", "Writer", "Novel", "Story", "Author")
_ROLE_OF = {Asked.DIRECTOR: Role.DIRECTOR, Asked.CAST: Role.ACTOR, Asked.WRITER: Role.WRITER}
_COUNTRIES = {
    "CN": "中国大陆",
    "HK": "中国香港",
    "TW": "中国台湾",
    "US": "美国",
    "GB": "英国",
    "JP": "日本",
    "KR": "韩国",
    "FR": "法国",
    "DE": "德国",
    "IN": "印度",
    "TH": "泰国",
    "IT": "意大利",
    "ES": "西班牙",
    "CA": "加拿大",
    "AU": "澳大利亚",
    "RU": "俄罗斯",
}
_GENRES = {
    28: "Action",
    12: "Adventure",
    16: "Animation",
    35: "Comedy",
    80: "Crime",
    99: "Documentary",
    18: "Drama",
    10751: "Family",
    14: "Fantasy",
    36: "History",
    27: "Horror",
    10402: "Music",
    9648: "Mystery",
    10749: "Romance",
    878: "Science Fiction",
    53: "Thriller",
    10752: "War",
    37: "Western",
    10759: "Action & Adventure",
    10762: "Kids",
    10765: "Sci-Fi & Fantasy",
    10768: "War & Politics",
}
"""English names of TMDB's genres, for answers in another language than the stored one."""


@dataclass(frozen=True, slots=True)
class Work:
    """A title that a person worked on: its key, name and year, how, and how many voted on it."""

    key: EntityKey
    name: str
    year: int | None
    role: Role | None
    votes: float


class Sentences:
    """Sentences about what was found, in one language.

    Args:
        wanted: The language.
        payloads: TMDB's details, in their stored form.
        graph: Their nodes and edges.
    """

    def __init__(self, wanted: Language, payloads: Sequence[Mapping[str, Any]], graph: TransientGraph) -> None:
        self._language: Language = wanted
        self._graph = graph
        self._raw = {
            EntityKey(EntityType(each["type"]), tmdb_id): each["data"]
            for each in payloads
            if (tmdb_id := id_of(each["data"].get("id"))) is not None
        }

    def found(
        self,
        route: Route,
        selected: Sequence[ScoredCandidate],
        candidates: Sequence[Sequence[ScoredCandidate]],
        alike: Sequence[ScoredCandidate] | None,
        *,
        stored: bool = False,
    ) -> str:
        """Return the answer about what was chosen.

        Args:
            route: The route of the question.
            selected: What was chosen.
            candidates: The candidates of each name.
            alike: Titles of the genres of the one that was chosen; None if they are not known.
            stored: Whether those are stored ones that share people with it.
        """
        people = [each for each in selected if each.key.type is EntityType.PERSON]
        if route.asked is Asked.TOGETHER and len(people) > 1:
            said = self._together(people, route)
        elif route.asked is Asked.LIKE and alike is not None and selected[0] not in people:
            said = self._alike(selected[0], alike, stored=stored)
        else:
            said = "".join(self._about(each, route) for each in selected)
        others = [each for ranked in candidates for each in ranked if _rivals(each, selected)]
        if not others:
            return said
        text = translated(" (Of the same name: {names}.)", self._language)
        return said + text.format(names=self._list(map(self.titled, others[:_NAMESAKES])))

    def unasked(self, names: Sequence[str]) -> str:
        """Return that nothing is known of some names of the question, empty for none."""
        if not names:
            return ""
        text = translated(" Nothing is stored of {names}, and TMDB gave no answer now.", self._language)
        return text.format(names=self._list(f"“{name}”" for name in names))

    def nothing(self, route: Route, candidates: Sequence[Sequence[ScoredCandidate]]) -> str:
        """Return that TMDB has nothing of that name, and what comes near."""
        names = self._list(f"“{name}”" for name in route.extracted_entities)
        best = [each for ranked in candidates for each in ranked[:3]]
        said = translated("TMDB has nothing named {names}.", self._language).format(names=names)
        if best:
            said += translated(" Similar names: {names}.", self._language).format(
                names=self._list(map(self.titled, best))
            )
        return said

    def recommended(self, route: Route, candidates: Sequence[Sequence[ScoredCandidate]]) -> str:
        """Return the titles that are recommended."""
        titles = self._list(self.titled(each) for ranked in candidates for each in ranked[:_SHOWN])
        if route.query_intent is Intent.SERIES:
            some = translated("You might like these series: {titles}.", self._language)
            none = translated("No series fit that.", self._language)
        else:
            some = translated("You might like these films: {titles}.", self._language)
            none = translated("No films fit that.", self._language)
        return some.format(titles=titles) if titles else none

    def titled(self, candidate: ScoredCandidate) -> str:
        """Return how a candidate is called."""
        raw = self._raw.get(candidate.key)
        name = self._name(candidate.key, raw) if raw else candidate.name
        return self._called(candidate.key, name or candidate.name, candidate.year)

    # --- one entity

    def _about(self, chosen: ScoredCandidate, route: Route) -> str:
        raw, titled = self._raw.get(chosen.key), self.titled(chosen)
        if raw is None:
            return translated("{title} was found, but not its details.", self._language).format(title=titled)
        if chosen.key.type is EntityType.PERSON:
            only = translated(" That is of stored titles only.", self._language) if raw.get(OF_TITLES) else ""
            return self._person(chosen, raw, route) + only
        role = _ROLE_OF.get(route.asked) or (route.role_hint if route.asked in (Asked.ABOUT, Asked.WORKS) else None)
        if role is not None:
            return self._credited(titled, role, chosen.key)
        say = {
            Asked.RATING: self._rating,
            Asked.YEAR: self._year,
            Asked.RUNTIME: self._runtime,
            Asked.EPISODES: self._episodes,
            Asked.PLOT: self._plot,
            Asked.GENRES: self._genres,
            Asked.COUNTRY: self._countries,
            Asked.LANGUAGE: self._languages,
        }.get(route.asked)
        if say is None:
            return self._summary(titled, chosen.key, raw)
        fact = self._of_season(route.season, raw) if route.season is not None else say(chosen.key, raw)
        unknown = translated("TMDB does not say that of {title}.", self._language).format(title=titled)
        return f"{titled}{self._colon}{fact}" if fact else unknown

    def _summary(self, titled: str, key: EntityKey, raw: Mapping[str, Any]) -> str:
        directors, cast = self._people(Role.DIRECTOR, key), self._people(Role.ACTOR, key)
        directed = translated("directed by {names}", self._language).format(names=self._list(directors[:_SHOWN]))
        acted = translated("with {names}", self._language).format(names=self._list(cast[:_SHOWN]))
        parts = [
            directed if directors else "",
            acted if cast else "",
            self._genres(key, raw).rstrip("。."),
            self._rating(key, raw).rstrip("。."),
        ]
        end = "。" if self._language == "zh" else ". "
        joined = ("；" if self._language == "zh" else "; ").join(filter(None, parts))
        return f"{titled}{end}{joined}{end}{self._overview(raw)}".strip()

    def _rating(self, key: EntityKey, raw: Mapping[str, Any]) -> str:
        rating, votes = number_of(raw.get("vote_average")), number_of(raw.get("vote_count"))
        if not votes or rating is None:
            return ""
        text = translated("rated {rating} of 10 at TMDB by {votes} users.", self._language)
        return text.format(rating=f"{rating:.1f}", votes=f"{int(votes):,}")

    def _year(self, key: EntityKey, raw: Mapping[str, Any]) -> str:
        day = day_of(raw.get(SHOWN[key.type][1]))
        if day is None:
            return ""
        shown = f"{day.year} 年 {day.month} 月 {day.day} 日" if self._language == "zh" else f"{day.isoformat()}"
        if key.type is EntityType.TV:
            return translated("first broadcast on {day}.", self._language).format(day=shown)
        return translated("released on {day}.", self._language).format(day=shown)

    def _runtime(self, key: EntityKey, raw: Mapping[str, Any]) -> str:
        given = raw.get("runtime") or next(iter(raw.get("episode_run_time") or ()), None)
        minutes = number_of(given)
        if not minutes:
            return ""
        if key.type is EntityType.TV:
            return translated("{minutes} minutes an episode.", self._language).format(minutes=int(minutes))
        return translated("{minutes} minutes long.", self._language).format(minutes=int(minutes))

    def _episodes(self, key: EntityKey, raw: Mapping[str, Any]) -> str:
        seasons, episodes = number_of(raw.get("number_of_seasons")), number_of(raw.get("number_of_episodes"))
        if key.type is EntityType.MOVIE:
            return translated("a film, without episodes.", self._language)
        if not seasons or not episodes:
            return ""
        text = translated("seasons: {seasons}, episodes: {episodes}.", self._language)
        return text.format(seasons=int(seasons), episodes=int(episodes))

    def _of_season(self, season: int, raw: Mapping[str, Any]) -> str:
        for each in items_of(raw, "seasons"):
            if number_of(each.get("season_number")) == season and (episodes := number_of(each.get("episode_count"))):
                text = translated("season {season}: {episodes} episodes.", self._language)
                return text.format(season=season, episodes=int(episodes))
        return ""

    def _plot(self, key: EntityKey, raw: Mapping[str, Any]) -> str:
        return self._overview(raw)

    def _genres(self, key: EntityKey, raw: Mapping[str, Any]) -> str:
        names = self._genre_names(raw)
        return translated("genres: {names}.", self._language).format(names=names) if names else ""

    def _genre_names(self, raw: Mapping[str, Any]) -> str:
        named = [
            (_GENRES.get(id_of(each.get("id")) or 0) if self._language == "en" else None) or text_of(each.get("name"))
            for each in items_of(raw, "genres")
        ]
        return self._list(filter(None, named))

    def _countries(self, key: EntityKey, raw: Mapping[str, Any]) -> str:
        codes = {
            str(each.get("iso_3166_1")): text_of(each.get("name")) or ""
            for each in items_of(raw, "production_countries")
        }
        codes = codes or {str(code): str(code) for code in raw.get("origin_country") or ()}
        named = [_COUNTRIES.get(code, name) if self._language == "zh" else name for code, name in codes.items()]
        names = self._list(filter(None, named))
        return translated("made in {names}.", self._language).format(names=names) if names else ""

    def _languages(self, key: EntityKey, raw: Mapping[str, Any]) -> str:
        of = "english_name" if self._language == "en" else "name"
        names = self._list(filter(None, (text_of(each.get(of)) for each in items_of(raw, "spoken_languages"))))
        return translated("spoken: {names}.", self._language).format(names=names) if names else ""

    def _overview(self, raw: Mapping[str, Any]) -> str:
        return self._in_language(raw, "overview") or text_of(raw.get("overview")) or ""

    def _people(self, role: Role, key: EntityKey) -> list[str]:
        node = NodeKey(LABELS[key.type], key.tmdb_id)
        if role is Role.WRITER:
            found = [name for job in _WRITERS for name in self._graph.people(Relation.CREW_MEMBER, node, job)]
            return list(dict.fromkeys(found))
        return self._graph.people(Relation.DIRECTED if role is Role.DIRECTOR else Relation.ACTED_IN, node)

    def _credited(self, title: str, role: Role, key: EntityKey) -> str:
        people = self._people(role, key)
        if not people:
            none = {
                Role.DIRECTOR: translated("TMDB names no director of {title}.", self._language),
                Role.ACTOR: translated("TMDB names no actors of {title}.", self._language),
                Role.WRITER: translated("TMDB names no writer of {title}.", self._language),
            }
            return none[role].format(title=title)
        some = {
            Role.DIRECTOR: translated("{title} was directed by {names}{more}.", self._language),
            Role.ACTOR: translated("The cast of {title}: {names}{more}.", self._language),
            Role.WRITER: translated("{title} was written by {names}{more}.", self._language),
        }
        more = ""
        if len(people) > _SHOWN:
            more = translated(" and others, {count} in all", self._language).format(count=len(people))
        return some[role].format(title=title, names=self._list(people[:_SHOWN]), more=more)

    # --- people

    def _person(self, chosen: ScoredCandidate, raw: Mapping[str, Any], route: Route) -> str:
        works = [each for each in works_of(raw) if _fits(each, route)]
        words = {
            Role.DIRECTOR: translated("directed {titles}{more}", self._language),
            Role.ACTOR: translated("acted in {titles}{more}", self._language),
            Role.WRITER: translated("wrote {titles}{more}", self._language),
        }
        roles = [route.role_hint] if route.role_hint else [Role.DIRECTOR, Role.ACTOR]
        said = []
        for role in roles:
            titles = list({each.key: each for each in works if each.role is role}.values())
            if titles:
                said.append(words[role].format(titles=self._works(titles), more=self._more(titles)))
        if not said:
            none = translated("TMDB lists no such titles of {name}.", self._language)
            return none.format(name=chosen.name)
        joined = ("，" if self._language == "zh" else "; ").join(said)
        return f"{chosen.name}{joined}。" if self._language == "zh" else f"{chosen.name} {joined}."

    def _together(self, people: Sequence[ScoredCandidate], route: Route) -> str:
        each_of = [
            {work.key: work for work in works_of(self._raw.get(person.key, {})) if _in_years(work, route)}
            for person in people
        ]
        common = [work for key, work in each_of[0].items() if all(key in other for other in each_of[1:])]
        names = self._list(person.name for person in people)
        if not common:
            return translated("TMDB lists no title of {names} together.", self._language).format(names=names)
        some = translated("{names} have in common: {titles}{more}.", self._language)
        return some.format(names=names, titles=self._works(common), more=self._more(common))

    def _alike(self, chosen: ScoredCandidate, alike: Sequence[ScoredCandidate], *, stored: bool) -> str:
        raw = self._raw.get(chosen.key, {})
        genres = self._genre_names(raw)
        titles = self._list(map(self.titled, [each for each in alike if each.key != chosen.key][:_SHOWN]))
        if not titles:
            return translated("TMDB has no other titles like {title}.", self._language).format(
                title=self.titled(chosen)
            )
        some = translated("Of the kind of {title} ({genres}): {titles}.", self._language)
        if stored:
            some = translated("Of what is stored, with people of {title} ({genres}): {titles}.", self._language)
        return some.format(title=self.titled(chosen), genres=genres or "—", titles=titles)

    def _works(self, works: Sequence[Work]) -> str:
        best = sorted(works, key=lambda each: -each.votes)[:_SHOWN]
        called = [self._called(each.key, each.name, None) for each in best]
        return "".join(called) if self._language == "zh" else self._list(called)

    def _more(self, works: Sequence[Work]) -> str:
        if len(works) <= _SHOWN:
            return ""
        return translated(" and others, {count} titles in all", self._language).format(count=len(works))

    # --- words

    @property
    def _colon(self) -> str:
        return "：" if self._language == "zh" else ": "

    def _list(self, names: Iterable[str]) -> str:
        return ("、" if self._language == "zh" else ", ").join(names)

    def _called(self, key: EntityKey, name: str, year: int | None) -> str:
        if key.type is EntityType.PERSON:
            return name
        if self._language == "zh":
            return f"《{name}》" + (f"（{year}）" if year else "")
        return name + (f" ({year})" if year else "")

    def _name(self, key: EntityKey, raw: Mapping[str, Any]) -> str:
        name = SHOWN[key.type][0]
        return self._in_language(raw, name) or text_of(raw.get(name)) or ""

    def _in_language(self, raw: Mapping[str, Any], name: str) -> str:
        """Return a text of a title's translations, for English answers; empty if there is none."""
        if self._language == "zh":
            return ""
        if name != "overview" and raw.get("original_language") == "en":
            return text_of(raw.get(f"original_{name}")) or ""
        for each in items_of(raw.get("translations"), "translations"):
            if each.get("iso_639_1") == "en" and isinstance(data := each.get("data"), Mapping):
                return text_of(data.get(name)) or ""
        return ""


def works_of(raw: Mapping[str, Any]) -> Iterator[Work]:
    """Yield what a person worked on, once for each role, as TMDB's answer about the person lists it."""
    kinds = {"combined_credits": "", "movie_credits": "movie", "tv_credits": "tv"}
    for credits, part in ((credits, part) for credits in kinds for part in ("cast", "crew")):
        for each in items_of(raw.get(credits), part):
            tmdb_id, media = id_of(each.get("id")), kinds[credits] or each.get("media_type")
            if tmdb_id is None or media not in ("movie", "tv"):
                continue
            key = EntityKey(EntityType(media), tmdb_id)
            name, day = SHOWN[key.type]
            made = day_of(each.get(day))
            role = Role.ACTOR if part == "cast" else _JOBS.get(text_of(each.get("job")) or "")
            votes = number_of(each.get("vote_count")) or 0.0
            yield Work(key, text_of(each.get(name)) or "", made.year if made else None, role, votes)


_JOBS = {"Director": Role.DIRECTOR, **dict.fromkeys(_WRITERS, Role.WRITER)}


def _fits(work: Work, route: Route) -> bool:
    return _in_years(work, route) and (route.media is None or work.key.type is route.media)


def _in_years(work: Work, route: Route) -> bool:
    if route.years is None:
        return True
    first, last = route.years
    return work.year is not None and (first or 0) <= work.year <= (last or 9999)


def _rivals(candidate: ScoredCandidate, selected: Sequence[ScoredCandidate]) -> bool:
    """Return whether a candidate that was not chosen is as similar as a chosen one."""
    chosen = {each.key for each in selected}
    least = min((each.score for each in selected), default=0.0)
    return candidate.exact and candidate.key not in chosen and least - candidate.score < LEAD
