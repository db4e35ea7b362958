"""Paths of the moderators' page besides its queue: sessions, trust, words, rules of the order, the log, posters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Query, Request, Response
from sqlalchemy import Connection

from douban_pipeline.comments import rule_changes
from douban_pipeline.comments.api.admin_models import (
    CurrentRule,
    CurrentTrust,
    LogPage,
    Moderator,
    PreviewedComment,
    PreviewedRule,
    RuleRequest,
    RulesPage,
    SessionRequest,
    TrustNumbers,
    TrustPage,
    TrustRequest,
    WordsPage,
    WordsRequest,
)
from douban_pipeline.comments.api.context import Context, bearer_of
from douban_pipeline.comments.api.problems import CommentId, ObjectId, Problem, ProblemRoute
from douban_pipeline.comments.api.sessions import moderator, moderator_name
from douban_pipeline.comments.heat.factors import GRAPH
from douban_pipeline.comments.scoring import policies
from douban_pipeline.comments.store import actions, moderators
from douban_pipeline.comments.store.comment_lists import get_comments
from douban_pipeline.comments.store.sections import get_section
from douban_pipeline.comments.trust import ADDRESS, USER, TrustRules, subject_of
from douban_pipeline.comments.types import Actor, Rank
from douban_pipeline.core.counters import CountersUnavailableError
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.pictures import NoPicture, Picture

MOST_PREVIEWED = 50_000
"""Comments of a section above which the page previews no rule: it would take seconds at every move of the slider."""
_PAGE = 100
_Result = TypeVar("_Result")


def admin_tools_router(context: Context) -> APIRouter:
    """Return the router of the paths below ``/v1/admin`` that are not about single comments."""
    operator = Depends(context.operator)
    router = APIRouter(prefix="/v1/admin", route_class=ProblemRoute, tags=["admin"], dependencies=[operator])
    services, engine = context.services, context.services.engine

    async def run(name: str, work: Callable[[], _Result]) -> _Result:
        def explained() -> _Result:
            try:
                return work()
            except ProblemsError as error:
                raise Problem(400, "；".join(error.problems)) from None

        return await context.dependencies.call(name, partial(context.in_thread, explained), expected=(Problem,))

    async def read(work: Callable[[Connection], _Result]) -> _Result:
        def reads() -> _Result:
            with reading(engine) as connection:
                return work(connection)

        return await run("page", reads)

    async def write(work: Callable[[Connection], _Result]) -> _Result:
        return await run("write", lambda: run_transaction(engine, work))

    @router.post("/session")
    async def begin(request: Request, response: Response, body: SessionRequest, actor: Actor = operator) -> Moderator:
        """Begin a session: set a signed cookie instead of the token. Changing the token ends it."""
        if not bearer_of(request):
            raise Problem(401, "需要管理令牌", {"WWW-Authenticate": "Bearer"})
        context.moderators.begin(request, response, actor, body.name, remember=body.remember)
        return _shown(moderator(actor.rank, moderator_name(body.name)))

    @router.get("/session")
    async def session(actor: Actor = operator) -> Moderator:
        """Return who is logged in."""
        return _shown(actor)

    @router.delete("/session", status_code=204)
    async def end(request: Request) -> Response:
        """End the session, in all processes."""
        response = Response(status_code=204)
        try:
            await context.moderators.end(request, response)
        except CountersUnavailableError:
            raise Problem(503, "没有退出：数据库暂时无法写入，请稍后再退出一次", {"Retry-After": "30"}) from None
        return response

    @router.get("/trust")
    async def trust() -> TrustPage:
        """Return the levels in force and the rules for everybody else."""
        now = services.clock.now()
        levels, (rules, _) = await read(
            lambda connection: (moderators.list_levels(connection, now), moderators.read_options(connection))
        )
        shown: list[CurrentTrust] = [
            {
                "id": str(row["trust_id"]),
                "kind": row["kind"],
                "subject": row["subject"],
                "level": row["level"],
                "reason": row["reason"],
                "author": row["author"],
                "at": row["created_at"].isoformat(),
                "until": row["until"].isoformat() if row["until"] else None,
            }
            for row in levels
        ]
        return {"levels": shown, "rules": rules, "defaults": TrustRules()}

    @router.post("/trust", status_code=201)
    async def set_trust(body: TrustRequest, actor: Actor = operator) -> dict[str, str]:
        """Ban, watch or trust a user or an address, in place of the level that it has; for good, or until a time."""
        now = services.clock.now()
        if body.until is not None and body.until <= now:
            raise Problem(400, "结束时间已经过去")
        if len(body.reason.strip()) < 2:
            raise Problem(400, "请写明理由")

        def work(connection: Connection) -> dict[str, str]:
            subject = subject_of(USER if body.kind == "user" else ADDRESS, body.subject)
            given = (connection, body.kind, subject, body.level, body.reason.strip(), actor.key, now, body.until)
            return {"id": str(moderators.set_level(*given)), "subject": subject}

        return await write(work)

    @router.delete("/trust/{trust_id:int}", status_code=204)
    async def end_trust(trust_id: CommentId, actor: Actor = operator) -> Response:
        """End a level."""
        now = services.clock.now()
        if not await write(lambda connection: moderators.end_level(connection, trust_id, actor.key, now)):
            raise Problem(404, "没有这项设置，或已经结束")
        return Response(status_code=204)

    @router.put("/trust/rules", status_code=204)
    async def set_rules(body: TrustNumbers, actor: Actor = operator) -> Response:
        """Set how users are trusted whom nobody set a level for."""
        rules, now = TrustRules(body.newcomers, body.trusted_after), services.clock.now()
        await write(lambda connection: moderators.set_rules(connection, rules, actor.key, now))
        return Response(status_code=204)

    @router.get("/words")
    async def words() -> WordsPage:
        """Return the words that moderators added; those of the CMS's own files are edited in the CMS."""
        found = await read(moderators.read_words)
        return {"mask": found[moderators.MASK], "review": found[moderators.REVIEW]}

    @router.patch("/words", status_code=204)
    async def change_words(body: WordsRequest, actor: Actor = operator) -> Response:
        """Add words and remove others; from the next comment on."""
        added, removed = ({each.strip() for each in given} - {""} for given in (body.add, body.remove))
        if not added and not removed:
            raise Problem(400, "没有写明词语")
        now = services.clock.now()
        await write(
            lambda connection: moderators.change_words(connection, body.consequence, added, removed, actor.key, now)
        )
        return Response(status_code=204)

    @router.get("/rules")
    async def rules() -> RulesPage:
        """Return the rules in force over the order by heat."""
        found: list[CurrentRule] = [
            {
                "name": rule.name,
                "expression": rule.expression,
                "decision": rule.decision,
                "amount": rule.amount,
                "sections": [str(number) for number in rule.scope.sections],
                "reason": rule.reason,
            }
            for rule in await read(policies.rules_in_force)
        ]
        factors = {name: factor.meaning for name, factor in GRAPH.factors.items()}
        return {"rules": found, "factors": factors}

    def previewed(body: RuleRequest) -> rule_changes.RulePreview:
        with reading(engine) as connection:
            section = get_section(connection, int(body.section))
        if section is not None and section["total_count"] > MOST_PREVIEWED:
            raise ProblemsError([f"这个评论区超过 {MOST_PREVIEWED} 条，请用 save_comment_rule 任务试算"])
        return rule_changes.preview_rule(services, int(body.section), body.rule())

    @router.post("/rules/preview")
    async def preview(body: RuleRequest) -> PreviewedRule:
        """Return what a rule would move in a section; nothing is changed."""

        def work() -> PreviewedRule:
            found = previewed(body)
            before, after = (
                {number: place for place, number in enumerate(ids, 1)} for ids in (found.before, found.after)
            )
            with reading(engine) as connection:
                views = get_comments(connection, list({**after, **before}))
            first: list[PreviewedComment] = [
                {
                    "id": str(number),
                    "text": views[number].content[:100],
                    "before": before.get(number),
                    "after": after.get(number),
                }
                for number in {**after, **before}
                if number in views
            ]
            effect = found.effect
            return {
                "sentences": effect.sentences()[:1],
                "comments": effect.comments,
                "hits": effect.hits.get(body.name, 0),
                "changed": effect.changed,
                "moved": effect.moved,
                "first": first,
            }

        return await run("explanation", work)

    @router.post("/rules", status_code=201)
    async def save(body: RuleRequest, actor: Actor = operator) -> dict[str, int]:
        """Put a rule in force in place of the one of its name; sections follow at their next score."""
        if len(body.reason.strip()) < 2:
            raise Problem(400, "请写明理由：解释名次时会显示")

        def work() -> dict[str, int]:
            found = previewed(body)
            return {"revision": rule_changes.activate_rule(services, body.rule(), found.effect, actor.key)}

        return await run("explanation", work)

    @router.delete("/rules/{name}", status_code=204)
    async def retire(name: str, actor: Actor = operator) -> Response:
        """Retire a rule; sections follow at their next score."""
        await run("write", lambda: rule_changes.retire_rule(services, name, actor.key, dry_run=False))
        return Response(status_code=204)

    @router.get("/log")
    async def log(
        actor: Annotated[str, Query(max_length=40)] = "",
        before: Annotated[str, Query(pattern=r"^(\d{1,18}\.\d{1,18})?$")] = "",
    ) -> LogPage:
        """Return who did what, newest first."""
        first, _, second = before.partition(".")
        place = (int(first), int(second)) if before else None

        def find(connection: Connection) -> actions.LogPage:
            page = actions.read_log(connection, place, actor, _PAGE)
            parts = [each["about"].partition(":") for each in page.entries]
            numbers = [int(name) if kind == "comment" else 0 for kind, _, name in parts]
            views = get_comments(connection, [number for number in numbers if number])
            for each, number in zip(page.entries, numbers, strict=True):
                each["text"] = views[number].content[:80] if number in views else ""
            return page

        found = await read(find)
        further = f"{found.before[0]}.{found.before[1]}" if found.before else None
        return {"entries": found.entries, "next": further}

    @router.get("/films/{vod_id}/poster", response_class=Response, responses={200: {"content": {"image/*": {}}}})
    async def poster(vod_id: ObjectId) -> Response:
        """Return the poster of a video, as the service fetched it."""

        def find() -> Picture:
            if services.films is None:
                raise Problem(404, "没有海报")
            try:
                return services.films.poster(vod_id)
            except NoPicture as error:
                raise Problem(404, str(error)) from None

        found = await run("films", find)
        headers = {"Cache-Control": "private, max-age=86400"}
        return Response(found.body, media_type=found.media_type, headers=headers)

    return router


def _shown(actor: Actor) -> Moderator:
    return {"key": actor.key, "name": actor.key.partition(":")[2], "audit": actor.rank == Rank.AUDIT}
