"""A model reads what was published: what it rejects only the audit brings back, and nothing waits for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import select

from douban_pipeline.comments.model_review import ModelReviewer, ModelReviewReport
from douban_pipeline.comments.plugs import Judgement, PlugError, TextVerdict
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.tables import content
from douban_pipeline.comments.types import CommentStatus
from douban_pipeline_tests.comments.stage import AUDIT, OPERATOR, Stage, stage, user


class Model:
    """Says what is set, by the text; fails where nothing is."""

    def __init__(self, **verdicts: TextVerdict | None) -> None:
        self.verdicts = verdicts
        self.asked: list[str] = []

    def judge(self, comment_id: int, text: str) -> Judgement:
        self.asked.append(text)
        verdict = self.verdicts.get(text, TextVerdict.FINE)
        if verdict is None:
            raise PlugError("no answer")
        return Judgement(verdict=verdict, reason="违规" if verdict != TextVerdict.FINE else "")


@pytest.fixture
def place(any_database_url: str) -> Iterator[Stage]:
    with stage(any_database_url) as opened:
        yield opened


def reviewer(place: Stage, model: Model) -> ModelReviewer:
    return ModelReviewer(place.engine, place.clock, place.worker._owner, model)


def test_what_it_rejects_is_gone_for_operators_and_what_it_doubts_waits(place):
    good, bad, odd = (place.publish(user(2), text) for text in ("好", "坏", "怪"))
    place.work()
    model = Model(坏=TextVerdict.REJECT, 怪=TextVerdict.REVIEW)
    assert reviewer(place, model).turn() == ModelReviewReport(judged=3, rejected=1, doubted=1)
    place.work()
    assert [place.comment(number).status for number in (good, bad, odd)] == [
        CommentStatus.NORMAL,
        CommentStatus.DELETED,
        CommentStatus.REVIEW,
    ]
    for number in (bad, odd):
        place.set_status(OPERATOR, number, CommentStatus.NORMAL)
    place.undo(OPERATOR, bad)
    place.work()
    assert place.comment(bad).status == CommentStatus.DELETED, "operators do not bring back what the model rejected"
    assert place.comment(odd).status == CommentStatus.NORMAL, "what it only doubts, they decide"
    place.set_status(AUDIT, bad, CommentStatus.NORMAL)
    place.work()
    assert place.comment(bad).status == CommentStatus.NORMAL
    assert reviewer(place, model).turn() == ModelReviewReport()
    assert model.asked == ["好", "坏", "怪"], "each text once"


def test_what_nobody_answers_for_is_judged_later_and_a_silent_model_is_left_alone(place):
    texts = [f"第 {number} 条" for number in range(6)]
    for text in texts:
        place.publish(user(2), text)
    place.work()
    model = Model(**dict.fromkeys(texts))
    judge = reviewer(place, model)
    assert judge.turn() == ModelReviewReport(failed=6)
    assert judge.turn() == ModelReviewReport(), "it pauses"
    assert len(model.asked) == 6
    model.verdicts = {texts[0]: TextVerdict.REJECT}
    place.clock.advance(seconds=31)
    place.worker._keep_leases()
    assert judge.turn() == ModelReviewReport(judged=6, rejected=1)


def test_old_hidden_reviewed_and_other_workers_comments_are_not_sent(place):
    old = place.publish(user(2), "旧")
    place.work()
    place.clock.advance(minutes=61)
    hidden, reviewed, new = (place.publish(user(3), text) for text in ("藏", "看过", "新"))
    place.work()
    place.set_status(OPERATOR, hidden, CommentStatus.DELETED)
    place.set_status(OPERATOR, reviewed, CommentStatus.DELETED)
    place.set_status(OPERATOR, reviewed, CommentStatus.NORMAL)
    place.work()
    model = Model()
    stranger = ModelReviewer(place.engine, place.clock, "another worker", model)
    assert stranger.turn() == ModelReviewReport()
    assert reviewer(place, model).turn() == ModelReviewReport(judged=1)
    assert model.asked == ["新"]
    with place.engine.connect() as connection:
        judged = connection.execute(select(content.c.comment_id).where(content.c.judged)).scalars().all()
    assert judged == [new]
    assert old < new


def test_a_text_that_is_judged_twice_is_decided_of_once(place):
    bad = place.publish(user(2), "坏")
    place.work()
    judge = reviewer(place, Model(坏=TextVerdict.REJECT))
    judge.turn()
    with place.engine.begin() as connection:  # as if it had been killed before the mark
        connection.execute(content.update().values(judged=False))
    judge.turn()
    assert place.work() == 1
    assert place.comment(bad).status == CommentStatus.DELETED


def test_without_an_address_there_is_no_model_and_a_wrong_one_is_refused(tmp_path):
    assert CommentsSettings(_env_file=None, home=tmp_path).review_url == ""
    with pytest.raises(ValueError, match="not an address"):
        CommentsSettings(_env_file=None, home=tmp_path, review_url="ftp://x")
