"""One launch of decisions: its rows against what stands and against each other, as far as that costs no call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from douban_pipeline.core.database import reading
from douban_pipeline.douban.review.recording import validation
from douban_pipeline.douban.review.recording.elsewhere import note_others
from douban_pipeline.douban.review.recording.form import faults
from douban_pipeline.douban.review.recording.pending import Pending, known_sentence, read_pending
from douban_pipeline.douban.review.recording.rows import Row
from douban_pipeline.douban.review.recording.standing import Standing, look
from douban_pipeline.douban.review.recording.wishes import Wish
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import Aspect, Decision, aspect_of, contradict
from douban_pipeline.douban.store.videos import fingerprint
from douban_pipeline.douban.wording import ACTIONS

ALREADY = "已经如此，无需记录"


@dataclass(frozen=True, slots=True)
class Launch:
    """The rows of a launch in the order written, by video, and what stands about them."""

    rows: tuple[Row, ...]
    by_video: Mapping[int, Sequence[Row]]
    standing: Standing
    pending: Pending

    def in_order(self) -> tuple[list[Row], list[Row]]:
        """Return the rows about links, and the others: these are settled later, as some of them need a link."""
        links = [row for row in self.rows if aspect_of(row.wish.action) is Aspect.LINK]
        return links, [row for row in self.rows if aspect_of(row.wish.action) is not Aspect.LINK]

    def why_not(self, row: Row, services: Services) -> str:
        """Return why a row could not be carried out after what is decided of its video's link, empty if it could."""
        links = (each for each in self.by_video[row.vod_id] if aspect_of(each.wish.action) is Aspect.LINK)
        meant = next((each for each in links if each.outcome not in (None, "refused")), None)
        left = self.pending.link_left(row.wish)
        link = validation.as_decision(meant) if meant else Decision.from_row(left) if left else None
        row.douban_id = validation.standing_id(row.wish, self.standing, link, services)
        return validation.why_not_now(row, self.standing, link, services)


def examine(services: Services, wishes: Sequence[Wish]) -> Launch:
    """Return the rows of ``wishes`` with all that is found against them without asking anybody outside."""
    standing = look(services, wishes)
    rows = tuple(_begin(services, wish, standing) for wish in wishes)
    by_video: dict[int, list[Row]] = {}
    for row in rows:
        by_video.setdefault(row.vod_id, []).append(row)
    for about in by_video.values():
        _note_contradictions(about)
    sound = [row for row in rows if row.open]
    subjects = {row.douban_id for row in sound if row.linking}
    with reading(services.engine) as connection:
        pending = read_pending(services, connection, {row.vod_id for row in sound}, subjects)
    for row in sound:
        _compare(services, row, standing, pending)
    note_others(services, rows, standing, pending)
    return Launch(rows, by_video, standing, pending)


def _begin(services: Services, wish: Wish, standing: Standing) -> Row:
    row = Row(wish, standing.title(wish.vod_id), wish.douban_id)
    row.problems += faults(wish, ai_intros=services.settings.ai_intros)
    missing = validation.why_no_video(wish, standing)
    if missing:
        row.problems.append(missing)
        return row
    row.fingerprint = fingerprint(standing.rows[wish.vod_id])
    if not row.linking:
        if not row.problems:
            row.douban_id = validation.standing_id(wish, standing, None, services)
        return row
    verdict = standing.verdicts.get(wish.vod_id)
    row.verdict_id = wish.verdict_id or (verdict["verdict_id"] if verdict is not None else None)
    if not row.problems:
        row.douban_id, unknown = validation.subject_of(wish, standing)
        row.problems += [unknown] if unknown else []
    return row


def _note_contradictions(rows: Sequence[Row]) -> None:
    """Note with the rows about one video which of the others says something else: neither can be the one meant."""
    different = {row.identity: row for row in rows}
    if len(different) == 1:
        return
    for row in rows:
        mine, identity = (row.wish.action, row.wish.lock), row.identity
        for its, other in different.items():
            if its != identity and contradict(mine, (other.wish.action, other.wish.lock)):
                row.problems.append(f"与 {other.wish.where}（{ACTIONS[other.wish.action]}）矛盾，请只留下一条")
                break


def _compare(services: Services, row: Row, standing: Standing, pending: Pending) -> None:
    """Compare a sound row with what was decided about its video, and with what is so."""
    wish = row.wish
    same = pending.same(wish, row.identity, row.fingerprint)
    if same is not None:
        row.settle("known", known_sentence(same))
        return
    why = validation.why_stale(wish, row.douban_id, standing)
    if not why and not pending.replaced_by(wish) and validation.is_so_already(wish, row.douban_id, standing):
        row.settle("already", ALREADY)
    elif not why and aspect_of(wish.action) is Aspect.LINK:
        why = validation.why_not_now(row, standing, None, services)
    row.problems += [why] if why else []
