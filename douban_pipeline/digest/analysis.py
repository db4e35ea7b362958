"""Analyses of articles: several concurrent calls of the model until the slot's time is up; each result is stored
once."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from random import Random

from sqlalchemy import Connection, select

from douban_pipeline.core.database import reading, run_patiently
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.interrupts import call_threads
from douban_pipeline.digest.answers import AnalysisAnswer
from douban_pipeline.digest.model_calls import Answered, Asker, CallsEnded, NoAnswer, Tries
from douban_pipeline.digest.prompts import ANALYSIS_SCHEMA, Prompt, analysis_prompt
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.store import analyses, items
from douban_pipeline.digest.store.analyses import AnalysisRecord
from douban_pipeline.digest.store.tables import analysis_result, content_item, slot_run
from douban_pipeline.digest.suspicions import sentences_with, suspicious_sentences, without
from douban_pipeline.digest.types import WaitingArticle

SLOT_MINUTES = 20
"""Minutes after which a slot starts no further call of the model: the run ends before the next slot is near."""
RETRIES_PER_SLOT = 10
"""Articles that failed before and are retried in one slot: new ones come first."""

MAX_SLOT_ATTEMPTS = 3
"""Number of slots in which the model answers nothing usable about an article before it is given up: what failed in
three of them, hours apart, would fail again."""
_REJECTIONS = 3
"""If the model rejects so many new articles and answers about none, it is not the articles that are wrong."""

MODEL_SAYS = "模型报告正文含有指令，但没有找到是哪一句"
TOLERANCE = 15
"""By how many points the score of a finding may fall without its suspicious sentences before they count as an
influence."""
_ROUND_SECONDS = 20.0
"""Interval at which a slot's lease is renewed while calls are in progress."""


@dataclass
class AnalysisReport:
    """Result of analysing.

    Attributes:
        wanted: Articles chosen.
        analysed: Articles with a result.
        failed: Articles for which all tries failed.
        settled: Those of them about which nobody can do anything: a filter refuses them, or they had failed before.
        left: Articles not sent to the model; they wait for the next slot.
        stored: Ids of the analyses.
        suspicious: Number of analyses that are marked: the article's text may have influenced the model.
        calls: Calls of the model.
        throttled: Number of calls that were throttled.
        tokens: Tokens of prompts and answers.
        ended: Why no further call was made; empty if all were made.
        alert: Whether that needs a person.
        refused: Whether the model takes no calls.
        problems: Reasons of failures, with the number of articles.
    """

    wanted: int = 0
    analysed: int = 0
    failed: int = 0
    settled: int = 0
    left: int = 0
    stored: list[int] = field(default_factory=list)
    suspicious: int = 0
    calls: int = 0
    throttled: int = 0
    tokens: int = 0
    ended: str = ""
    alert: bool = False
    refused: bool = False
    problems: Counter[str] = field(default_factory=Counter)

    def counters(self) -> dict[str, int | str]:
        """Return the counters stored with the slot."""
        return {
            "analyses_wanted": self.wanted,
            "analysed": self.analysed,
            "failed": self.failed,
            "settled": self.settled,
            "left": self.left,
            "suspicious": self.suspicious,
            "calls": self.calls,
            "throttled": self.throttled,
            "tokens": self.tokens,
            "calls_ended": self.ended,
            "calls_refused": self.refused,
        }


@dataclass(frozen=True, slots=True)
class _Judged:
    """The answer that counts for an article, all calls for it, and why it is marked, if it is."""

    answered: Answered
    calls: int
    throttled: int
    tokens: tuple[int, int]
    suspicions: Sequence[str] = ()


def _judged(answered: Answered, others: Sequence[Answered], suspicions: Sequence[str]) -> _Judged:
    both = (answered, *others)
    tokens = (
        sum(each.completion.prompt_tokens for each in both),
        sum(each.completion.completion_tokens for each in both),
    )
    return _Judged(answered, sum(each.calls for each in both), sum(each.throttled for each in both), tokens, suspicions)


@dataclass
class Analyser:
    """Analyses articles for one slot.

    Attributes:
        services: The services.
        run_id: The slot to which the analyses belong.
        owner: Owner of the claims.
        deadline: No call is started after this time.
        renew: Called regularly during the work; raises if the slot is lost.
        until: Articles published later belong to a later slot; None if there is none.
    """

    services: DigestServices
    run_id: int
    owner: str
    deadline: datetime
    renew: Callable[[], None] = lambda: None
    until: datetime | None = None
    _extended: datetime | None = None
    _rejected: list[tuple[WaitingArticle, NoAnswer]] = field(default_factory=list)
    _answered: bool = False

    def run(self) -> AnalysisReport:
        """Analyse waiting articles, up to a slot's limits."""
        services, settings = self.services, self.services.settings
        rubric = services.rubric
        lease = services.lease

        def claim(connection: Connection) -> list[WaitingArticle]:
            return items.claim_waiting(
                connection,
                most=settings.max_articles_per_slot,
                most_failed=RETRIES_PER_SLOT,
                owner=self.owner,
                now=services.now(),
                lease=lease,
                until=self.until,
            )

        waiting = run_patiently(services.engine, claim, services.clock)
        prompts = {
            each.content_item_id: analysis_prompt(rubric, each, settings.deepseek_content_truncate_chars)
            for each in waiting
        }
        return self._work(waiting, prompts)

    def again(self, ids: Sequence[int]) -> AnalysisReport:
        """Analyse articles that already have results; the new result replaces the old one under the same slot and
        id."""
        services = self.services
        with reading(services.engine) as connection:
            chosen = items.chosen(connection, ids)
        most = services.settings.deepseek_content_truncate_chars
        prompts = {each.content_item_id: analysis_prompt(services.rubric, each, most) for each in chosen}
        return self._work(chosen, prompts, replace=True)

    def _work(
        self, waiting: Sequence[WaitingArticle], prompts: dict[int, Prompt], *, replace: bool = False
    ) -> AnalysisReport:
        report = AnalysisReport(wanted=len(waiting))
        asker = Asker(self.services, self.deadline, Random(), fresh=replace)
        to_ask = list(reversed(waiting))
        ids = {each.content_item_id for each in waiting}
        under_way: dict[Future[_Judged], tuple[WaitingArticle, datetime]] = {}
        workers = self.services.settings.worker_concurrency
        try:
            with call_threads(workers, "analyse") as pool:
                while under_way or (to_ask and not report.ended):
                    while to_ask and len(under_way) < workers and not report.ended:
                        article = to_ask.pop()
                        future = pool.submit(self._judge, asker, article, prompts[article.content_item_id])
                        under_way[future] = (article, self.services.now())
                    done, _ = wait(under_way, timeout=_ROUND_SECONDS, return_when=FIRST_COMPLETED)
                    for future in done:
                        article, begun = under_way.pop(future)
                        self._take(future, article, prompts[article.content_item_id], begun, report, replace=replace)
                    self._keep(ids)
            if not self._answered and sum(not each.attempts for each, _ in self._rejected) >= _REJECTIONS:
                report.ended = report.ended or f"模型不接受请求：{self._rejected[0][1].reason}"
                report.alert = report.refused = True
            else:
                for article, error in self._rejected:
                    self._fail(article, error.reason, error.tries, report, replace=replace)
        finally:
            # Those that the model did not answer, and those at which an error or an interruption ended the work. What
            # is settled nobody holds any more.
            if ids and not replace:
                self._patiently(lambda connection: items.release(connection, ids, self.owner, self.services.now()))
        report.left += len(to_ask)
        return report

    def _judge(self, asker: Asker, article: WaitingArticle, prompt: Prompt) -> _Judged:
        """Return the model's answer about an article. One with sentences that may speak to the model is analysed once
        more without them: if it reaches the threshold only with them, or only without them, the better answer counts,
        marked, since the sentences may be the news itself. So does the lower of two findings that differ much.

        Raises:
            CallsEnded, NoAnswer: See `Asker.ask`; also if the second analysis failed and the first is no finding, which
                the sentences may have brought about.
        """
        name = f"analysis {article.content_item_id}"
        first = asker.ask("analysis", prompt, ANALYSIS_SCHEMA, name)
        answer = AnalysisAnswer.model_validate(first.completion.content)
        settings = self.services.settings
        threshold = settings.push_score_threshold
        texts = (article.title, article.description, article.text)
        sentences = [*suspicious_sentences(*texts), *sentences_with(answer.instructions, *texts)]
        if not sentences:
            return _judged(first, (), (MODEL_SAYS,) if answer.instructions_found else ())
        rest = dataclasses.replace(
            article,
            title=without(article.title, sentences),
            description=without(article.description, sentences),
            text=without(article.text, sentences),
        )
        again = analysis_prompt(self.services.rubric, rest, settings.deepseek_content_truncate_chars)
        try:
            second = asker.ask("analysis", again, ANALYSIS_SCHEMA, name)
        except (CallsEnded, NoAnswer) as error:
            if answer.score < threshold:
                raise
            return _judged(first, (), (f"有疑似写给模型的句子，没能去掉后再分析一次：{error.reason}",))
        score = AnalysisAnswer.model_validate(second.completion.content).score
        mark = f"有疑似写给模型的句子：去掉后由 {answer.score} 分变为 {score} 分"
        if (answer.score >= threshold) != (score >= threshold):
            better, other = (first, second) if answer.score > score else (second, first)
            return _judged(better, (other,), (f"{mark}，以高分为准",))
        if score >= threshold and answer.score - score > TOLERANCE:
            return _judged(second, (first,), (f"{mark}，以低分为准",))
        return _judged(first, (second,), ())

    def _keep(self, ids: Collection[int]) -> None:
        self.renew()
        lease = self.services.lease
        now = self.services.now()
        if self._extended is not None and now < self._extended + lease / 3:
            return
        until = now + lease
        self._extended = now
        self._patiently(lambda connection: items.extend_claims(connection, ids, self.owner, until))

    def _take(
        self,
        future: Future[_Judged],
        article: WaitingArticle,
        prompt: Prompt,
        begun: datetime,
        report: AnalysisReport,
        *,
        replace: bool,
    ) -> None:
        services = self.services
        try:
            judged = future.result()
        except CallsEnded as error:
            report.ended = report.ended or error.reason
            report.alert = report.alert or error.alert
            report.refused = report.refused or error.refused
            report.left += not error.tries.fault
            report.failed += bool(error.tries.fault)
            self._fail(article, error.tries.fault, error.tries, report, replace=replace)
            return
        except NoAnswer as error:
            report.failed += 1
            report.calls += error.tries.calls
            report.throttled += error.tries.throttled
            report.problems[error.reason] += 1
            if error.tries.rejected:
                self._rejected.append((article, error))
            else:
                self._fail(article, error.reason, error.tries, report, replace=replace)
            return
        self._answered = True
        record = self._record(judged, article, prompt, begun)
        stored = run_patiently(
            services.engine,
            lambda connection: analyses.store(connection, record, services.now(), replace=replace),
            services.clock,
        )
        report.analysed += 1
        report.suspicious += bool(record.suspicions)
        report.calls += judged.calls
        report.throttled += judged.throttled
        report.tokens += record.prompt_tokens + record.completion_tokens
        if stored is not None:
            report.stored.append(stored)

    def _fail(
        self, article: WaitingArticle, reason: str, tries: Tries, report: AnalysisReport, *, replace: bool
    ) -> None:
        """Count a failure of the article itself; one that the model did not answer waits, uncounted."""
        if not tries.fault:
            return
        self._answered = True
        report.settled += tries.final or article.attempts > 0
        if not replace:
            most, now = 1 if tries.final else MAX_SLOT_ATTEMPTS, self.services.now()
            self._patiently(
                lambda connection: items.note_failure(
                    connection, article.content_item_id, self.owner, reason, most, now
                )
            )

    def _patiently(self, work: Callable[[Connection], None]) -> None:
        run_patiently(self.services.engine, work, self.services.clock)

    def _record(self, judged: _Judged, article: WaitingArticle, prompt: Prompt, begun: datetime) -> AnalysisRecord:
        completion = judged.answered.completion
        settings = self.services.settings
        return AnalysisRecord(
            content_item_id=article.content_item_id,
            run_id=self.run_id,
            answer=AnalysisAnswer.model_validate(completion.content),
            suspicions=judged.suspicions,
            truncated=prompt.truncated,
            model=settings.deepseek_model,
            wire_model=completion.model or self.services.wire_model,
            rubric_hash=self.services.rubric.hash,
            calls=judged.calls,
            prompt_tokens=judged.tokens[0],
            completion_tokens=judged.tokens[1],
            duration_ms=int((self.services.now() - begun).total_seconds() * 1000),
            raw=completion.content,
            snapshot_id=completion.snapshot_id,
        )


MOST_AT_ONCE = 500
_ANSWER_DAYS = 30


def articles_to_rework(
    services: DigestServices, ids: Sequence[int], days: Sequence[date], *, only_other_rubric: bool
) -> list[int]:
    """Return the ids of the requested articles: listed one by one, or all those analysed in the slots of given days.

    Raises:
        ProblemsError: One does not exist, none is requested, or there are too many.
    """
    query = select(analysis_result.c.content_item_id).join(slot_run, slot_run.c.run_id == analysis_result.c.run_id)
    query = query.where(slot_run.c.run_date.in_(days))
    if only_other_rubric:
        query = query.where(analysis_result.c.rubric_hash != services.rubric.hash)
    with reading(services.engine) as connection:
        known = select(content_item.c.content_item_id).where(content_item.c.content_item_id.in_(ids))
        there = set(connection.execute(known).scalars()) if ids else set()
        found = there | (set(connection.execute(query).scalars()) if days else set())
    problems = [f"没有文章 {each}" for each in sorted(set(ids) - there)]
    if not ids and not days:
        problems.append("没有给出文章（articles）或日期（days）")
    if len(found) > MOST_AT_ONCE:
        problems.append(f"一次最多 {MOST_AT_ONCE} 篇，这里有 {len(found)} 篇：请分几天做")
    if problems:
        raise ProblemsError(problems)
    return sorted(found)


def analyse_again(services: DigestServices, ids: Sequence[int]) -> AnalysisReport:
    """Analyse articles again; each result replaces the previous one, and nothing is pushed."""
    deadline = services.now() + timedelta(minutes=SLOT_MINUTES)
    return Analyser(services, 0, "again", deadline).again(ids)


def drop_old(services: DigestServices, *, dry_run: bool = False) -> int:
    """Delete raw answers after their retention period; return how many, or how many a dry run would delete."""
    return services.archive.prune(services.now() - timedelta(days=_ANSWER_DAYS), dry_run=dry_run)
