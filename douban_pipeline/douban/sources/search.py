"""Finding candidate subjects: what is asked, what is answered, and what every way to ask has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, Protocol

from douban_pipeline.core.errors import SourceDoubted, SourceError

if TYPE_CHECKING:
    from douban_pipeline.core.http import FetchedAnswer, Fetcher

MISS_MAX_AGE = timedelta(days=1)
"""An archived answer without any subject is believed no longer than this, unless the caller gives another age."""


@dataclass(frozen=True, slots=True)
class VideoQuery:
    """One thing to search for, worded for each kind of provider. "" is a wording that there is not.

    Attributes:
        about: What the search is about, as the archive's key: normalised title and year.
        words: What a web search is asked.
        title: What an index of titles is asked: nothing but a title.
        form: Name of the form of ``words`` (``plain``, ``site`` …). Questions that share ``about`` and ``form`` share
            an answer, however their titles are spelt. Without it only the same words do; leave it out for words that
            say more than title and year.
        fits: Whether a hit may be what is searched for; without it any may. An answer none of whose hits fits is as
            good as an empty one.
        urgent: Whether a person waits for the answer: the call goes before those that are not urgent.
    """

    about: str
    words: str = ""
    title: str = ""
    form: str = ""
    fits: Callable[[Hit], bool] | None = field(default=None, compare=False)
    urgent: bool = field(default=False, compare=False)

    def wording(self, *, titles_only: bool) -> str:
        """Return what to ask a provider of the one kind or the other."""
        return self.title if titles_only else self.words

    def found_in(self, hits: Iterable[Hit]) -> bool:
        """Return whether any of ``hits`` may be what is searched for."""
        return any(self.fits is None or self.fits(hit) for hit in hits)


@dataclass(frozen=True, slots=True)
class Hit:
    """One subject a search named. What is not said is "" or None.

    Attributes:
        douban_id: The subject.
        title: Title of the result, as found.
        url: Address of the result.
        snippet: A search engine's excerpt.
        original_title: Title in the original language, where the source says it.
        year: Year, where the source says it.
        kind: ``movie`` or ``tv``, where the source says it.
        episodes: Number of episodes, where the source says it.
        aliases: Other titles, where the source says them.
    """

    douban_id: int
    title: str
    url: str
    snippet: str = ""
    original_title: str = ""
    year: int | None = None
    kind: str = ""
    episodes: int | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """What one search gave. An empty answer is a good one: whoever was asked worked and found nothing.

    Attributes:
        hits: Subjects in order of appearance, each once, with what the source says of them.
        snapshots: The archived raw answers it was read from.
        requests: Calls made for it; 0 if it is from the archive.
        fetched_at: When the source gave it (UTC).
        provider: Name of the provider that gave it.
        full: Whether the provider gave as many subjects as it ever does, so that there may be more.
        of_titles: Whether it is from an index of titles, which names all that bear a title at once.
        silent: Engines behind the source that did not answer; the hits may lack what they know.
        incomplete: Why a provider that should have been asked first gave no answer; None if all did. The hits are good,
            but that no other subject fits does not follow.
        failed: Names of the providers to whom a call failed; not of those that were closed or had no quota left.
    """

    hits: tuple[Hit, ...]
    snapshots: tuple[int, ...]
    requests: int
    fetched_at: datetime
    provider: str
    full: bool = False
    of_titles: bool = False
    silent: tuple[str, ...] = ()
    incomplete: SourceError | None = None
    failed: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """The subjects' ids."""
        return tuple(hit.douban_id for hit in self.hits)

    @property
    def from_cache(self) -> bool:
        """Whether no call was made."""
        return self.requests == 0


class SearchIncomplete(SourceError):  # noqa: N818 (as its like in `errors`)
    """Of several providers those that answered found nothing that fits, and others could not be asked or failed.

    Nothing may be concluded about this question; another may well be answered.

    Attributes:
        cause: The failure that says when to ask again.
    """

    healthy = None

    def __init__(self, source: str, cause: SourceError) -> None:
        super().__init__(source, f"an incomplete search; {cause}")
        self.args = (source, cause)  # so that the error survives pickling
        self.cause = cause


class SearchProvider(Protocol):
    """A way to find subjects."""

    @property
    def name(self) -> str:
        """Name of the provider, and of its source at the gate and in the archive."""
        ...

    @property
    def titles_only(self) -> bool:
        """Whether it is an index of titles, which only `VideoQuery.title` may be asked of."""
        ...

    def search(self, question: VideoQuery, *, max_age: timedelta | None) -> SearchAnswer:
        """Search once.

        Args:
            question: What to search for; the wording for this kind of provider must not be empty.
            max_age: Oldest archived answer to accept instead of a call; None always calls.

        Raises:
            SourceError: Of the kind that fits; see `core.errors`.
        """
        ...


@dataclass(frozen=True, slots=True)
class ParsedHits:
    """A parsed answer before it is joined with its snapshot."""

    hits: tuple[Hit, ...]
    silent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownTitle:
    """A question, and the subject that its answer is known to name."""

    question: VideoQuery
    douban_id: int


class HttpSearch(ABC):
    """A provider that answers one HTTP request; each kind is a subclass that says how to ask and to read.

    One that answers but finds nothing, again and again, is in doubt (`core.gate_evidence`): whoever asks it next asks
    for a known title first. Only one that finds that is believed.

    Args:
        fetcher: A fetcher whose source is the provider's name.
        url: Address of the interface.
        miss_max_age: How long an archived answer without any subject is believed, at most.
        known: Returns a title that a provider is known to find. Without it a provider in doubt stays closed.
    """

    name: ClassVar[str]
    parser_version: ClassVar[str]
    """Raise it whenever `parse` comes to read an answer differently; `reparse_archive` goes by it."""
    titles_only: ClassVar[bool] = False
    page_size: ClassVar[int] = 10
    """Subjects of a full answer."""

    def __init__(
        self,
        fetcher: Fetcher,
        url: str,
        *,
        miss_max_age: timedelta = MISS_MAX_AGE,
        known: Callable[[HttpSearch], KnownTitle] | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._url = url
        self._miss_max_age = miss_max_age
        self._known = known

    @abstractmethod
    def ask(
        self, text: str, key: str, *, found: Callable[[ParsedHits], bool], known: bool = False, urgent: bool = False
    ) -> FetchedAnswer[ParsedHits]:
        """Make the call for ``text``, to be archived under ``key``; the others as in `Fetcher.get`."""

    @abstractmethod
    def parse(self, body: bytes) -> ParsedHits:
        """Read one raw answer; raises a `SourceError` when it is none."""

    def search(self, question: VideoQuery, *, max_age: timedelta | None) -> SearchAnswer:
        """See `SearchProvider.search`."""
        fetched = self._cached(question, max_age) or self._believable(question)
        hits = fetched.value.hits
        return SearchAnswer(
            hits=hits,
            snapshots=(fetched.snapshot_id,),
            requests=0 if fetched.from_cache else 1,
            fetched_at=fetched.fetched_at,
            provider=self.name,
            full=len(hits) >= self.page_size,
            of_titles=self.titles_only,
            silent=fetched.value.silent,
        )

    def key_of(self, question: VideoQuery) -> str:
        """Return what answers to ``question`` are archived under."""
        form = "" if self.titles_only else question.form
        return f"search:{form or question.wording(titles_only=self.titles_only)}:{question.about}"

    def _believable(self, question: VideoQuery) -> FetchedAnswer[ParsedHits]:
        """Ask; of a provider in doubt, for a known title first."""
        try:
            return self._asked(question)
        except SourceDoubted:
            if self._known is None:
                raise
            self._asked(self._known(self))
            return self._asked(question)

    def _asked(self, asked: VideoQuery | KnownTitle) -> FetchedAnswer[ParsedHits]:
        known = isinstance(asked, KnownTitle)
        question = asked.question if isinstance(asked, KnownTitle) else asked

        def found(parsed: ParsedHits) -> bool:
            if isinstance(asked, KnownTitle):
                return any(hit.douban_id == asked.douban_id for hit in parsed.hits)
            return asked.found_in(parsed.hits)

        text, key = question.wording(titles_only=self.titles_only), self.key_of(question)
        return self.ask(text, key, found=found, known=known, urgent=question.urgent)

    def _cached(self, question: VideoQuery, max_age: timedelta | None) -> FetchedAnswer[ParsedHits] | None:
        key = self.key_of(question)
        found = self._fetcher.cached(key, max_age, self.parse)
        if found is None:
            return None
        hits = found.value.hits
        if found.value.silent and not hits:
            return None  # who kept silent then may answer now
        if not question.found_in(hits) and self._fetcher.doubts(found.fetched_at):
            return None  # it proves nothing
        if hits or max_age is None or max_age <= self._miss_max_age:
            return found
        return self._fetcher.cached(key, self._miss_max_age, self.parse)


def each_once(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Return the first hit of every subject, in order."""
    first: dict[int, Hit] = {}
    for hit in hits:
        first.setdefault(hit.douban_id, hit)
    return tuple(first.values())
