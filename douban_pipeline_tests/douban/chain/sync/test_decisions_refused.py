"""A decision that was sound when it was recorded is asked once more when it is applied."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.decisions.effects import effect_of
from douban_pipeline.douban.decisions.refusals import INTROS_OFF, decision_refusal
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.writes.refusals import OVERRIDE_CMS_LOCK
from douban_pipeline_tests.douban.chain.sync.conftest import RIVAL
from douban_pipeline_tests.douban.chain.sync.test_decisions import run_decisions
from douban_pipeline_tests.harness.fixtures.deciding import decide, decisions
from douban_pipeline_tests.harness.fixtures.library import GivenSettings
from douban_pipeline_tests.harness.fixtures.scenario import RIVER, TRAM, WHALE

CHANGED = "记录决定之后影片资料已改变（片名、别名、年份、地区、导演、主演或分类），请核对后重新决定"
LOCKED = {"douban_id_locked": True}
NO_LINK = "影片没有已确认的豆瓣关联，请先用 confirm_top1、choose 或 set_id 指定"
MOVED = "CMS 中的豆瓣 ID 已由 90000102 变为 90000101，请核对后用 set_id 指定"
TYPED = "豆瓣 ID 已由 90000102 变为 90000101（有人在 CMS 中修改），请核对后重新决定"

REFUSED = [
    # A lock, and the remedy.
    (
        "set_id",
        LOCKED,
        {},
        f"豆瓣 ID {WHALE['id']} 已锁定，要换成 {TRAM['id']} 请用 replace_and_lock，或先用 unlock_id 解锁",
    ),
    (
        "choose",
        LOCKED,
        {},
        f"豆瓣 ID {WHALE['id']} 已锁定，要换成 {TRAM['id']} 请用 replace_and_lock，或先用 unlock_id 解锁",
    ),
    (
        "confirm_top1",
        {**LOCKED, "vod_douban_id": 0},
        {},
        f"豆瓣 ID 已锁定为空，要换成 {TRAM['id']} 请用 replace_and_lock，或先用 unlock_id 解锁",
    ),
    ("clear_id", LOCKED, {}, f"豆瓣 ID {WHALE['id']} 已锁定，请先用 unlock_id 解锁"),
    ("rematch", LOCKED, {}, f"豆瓣 ID {WHALE['id']} 已锁定，不会重新匹配，请先用 unlock_id 解锁"),
    # Another video by now.
    ("set_id", {}, {"vod_name": "另一部"}, CHANGED),
    ("replace_and_lock", {}, {"vod_year": "1999"}, CHANGED),
    ("confirm_top1", {}, {"vod_director": "别人"}, CHANGED),
    ("choose", {}, {"type_id": 7}, CHANGED),
    # Another id than the one that the reviewer saw.
    *((action, {}, {"vod_douban_id": RIVER["id"]}, TYPED) for action in ("confirm_top1", "choose", "set_id")),
    ("replace_and_lock", LOCKED, {"vod_douban_id": RIVER["id"]}, TYPED),
    # Taken in by now.
    ("set_id", {"vod_douban_id": RIVER["id"], "douban_id_source": "cms"}, {"vod_douban_id": RIVER["id"]}, TYPED),
    ("set_id", {"vod_douban_id": 0}, {"vod_douban_id": 0}, TYPED.replace(str(RIVER["id"]), "空")),
    ("clear_id", {}, {"vod_douban_id": RIVER["id"]}, MOVED),
    ("lock_id", {}, {"vod_douban_id": RIVER["id"]}, MOVED),
    ("sync_now", {}, {"vod_douban_id": RIVER["id"]}, MOVED),
    # No link that it could be about.
    ("sync_now", {"douban_review_status": "REVIEW"}, {}, NO_LINK),
    ("sync_now", {"douban_review_status": "IGNORED"}, {}, NO_LINK),
    ("sync_now", {"vod_douban_id": 0}, {"vod_douban_id": 0}, NO_LINK),
    ("redo_intro", {}, {}, INTROS_OFF),
    # Nothing would come of it.
    ("sync_now", {}, {"vod_lock": 1}, f"影片已在 CMS 中锁定（vod_lock），{OVERRIDE_CMS_LOCK}"),
    ("set_id", {}, {"vod_lock": 1}, f"影片已在 CMS 中锁定（vod_lock），{OVERRIDE_CMS_LOCK}"),
]

ALLOWED = [
    ("set_id", {**LOCKED, "vod_douban_id": TRAM["id"]}, {}),
    ("replace_and_lock", LOCKED, {}),
    ("clear_id", {**LOCKED, "vod_douban_id": 0}, {}),
    ("rematch", {**LOCKED, "douban_review_status": "IGNORED"}, {}),
    ("ignore", LOCKED, {"vod_name": "另一部"}),
    ("lock_id", {}, {"vod_name": "另一部"}),
    ("lock_id", LOCKED, {"vod_douban_id": RIVER["id"]}),
    ("set_id", {}, {"vod_douban_id": TRAM["id"]}),
    ("set_id", {"vod_douban_id": RIVER["id"], "douban_id_source": "auto"}, {"vod_douban_id": RIVER["id"]}),
    ("set_id", {}, {"vod_content": "改", "vod_remarks": "更新至3集"}),
    ("ignore", {}, {"vod_douban_id": RIVER["id"]}),
    ("lock_intro", {"douban_review_status": "REVIEW"}, {"vod_name": "另一部"}),
    ("unlock_intro", {}, {"vod_douban_id": RIVER["id"]}),
    ("unlock_id", LOCKED, {"vod_douban_id": RIVER["id"]}),
]
LINKING = ("confirm_top1", "choose", "set_id", "replace_and_lock")


def test_why_a_decision_is_refused(doubtful):
    """The rules by themselves; below they are asked in a run."""
    library = doubtful.library
    row, state = library.row(5), library.state(5)
    for number, (action, of_state, of_row, sentence) in enumerate((*REFUSED, *((*each, None) for each in ALLOWED))):
        decide(library, 5, action, TRAM["id"] if action in LINKING else 0, pending_key=str(number))
        decision = Decision.from_row(doubtful.decisions()[-1])
        refusal = decision_refusal(decision, {**row, **of_row}, {**state, **of_state}, library.settings)
        assert refusal == sentence, (action, of_state, of_row)


@pytest.mark.parametrize(("action", "of_state", "of_row", "sentence"), REFUSED)
def test_a_refusal_is_reported_and_changes_nothing(doubtful, action, of_state, of_row, sentence):
    library = doubtful.library
    decide(library, 5, action, TRAM["id"] if action in LINKING else 0)
    if of_state:
        library.set_state(5, **of_state)
    if of_row:
        library.set_cms(5, **of_row)
    before, state, log = library.all_bytes(), library.state(5), library.log()
    metadata = doubtful.play(5, steps=["synced_fields"]).metadata("synced_fields")
    assert (metadata["decisions_refused"], metadata["decisions_applied"]) == (1, 0)
    assert (library.all_bytes(), library.log()) == (before, log)
    assert library.state(5) == state
    [(found, reason, key, settled)] = decisions(library, "state", "state_reason", "pending_key", "settled_at")
    assert (found, reason, key) == ("refused", sentence, None)
    assert settled is not None
    assert sentence.split("，")[0] in metadata["refused_decisions"].replace("\\", "")
    assert doubtful.play(5, steps=["synced_fields"]).metadata("synced_fields")["decisions_refused"] == 0, "once"


def test_a_release_before_this_one_noted_no_fingerprint(doubtful):
    decide(doubtful.library, 5, "set_id", TRAM["id"], fingerprint="", batch_id="")
    doubtful.library.set_cms(5, vod_name="另一部")
    run_decisions(doubtful, 5, applied=1)


def test_what_our_own_sync_filled_in_since_counts_as_changed(doubtful):
    """The reviewer has not seen it: nobody can say that the decision would be the same."""
    decide(doubtful.library, 5, "set_id", RIVAL["id"])
    doubtful.library.set_cms(5, vod_sub="蓝鲸记")
    run_decisions(doubtful, 5, refused=1)
    assert decisions(doubtful.library, "state_reason") == [CHANGED]


def test_intros_are_refused_only_where_they_are_off_or_nothing_is_to_tell(doubtful):
    decide(doubtful.library, 5, "redo_intro")
    [decision] = map(Decision.from_row, doubtful.decisions())
    row, state = doubtful.library.row(5), doubtful.library.state(5)
    options = {"ai_intros": True, "openrouter_api_key": "sk-or-v1-only-for-tests"}
    on = GivenSettings(**options)
    assert decision_refusal(decision, row, state, on) is None
    assert decision_refusal(decision, row, {**state, "douban_review_status": "REVIEW"}, on) == NO_LINK
    excluded = GivenSettings(**options, excluded_type_ids="6")
    assert decision_refusal(decision, row, state, excluded) == (
        "分类 6 不在处理范围内，请先调整 DOUBAN_PIPELINE_INCLUDED_TYPE_IDS 或 DOUBAN_PIPELINE_EXCLUDED_TYPE_IDS"
    )
    assert decision_refusal(decision, row, state, GivenSettings(**options, included_type_ids="7")) is not None


def test_a_lock_that_is_no_lock_of_the_id_locks_nothing(doubtful):
    """Actions that unlock, or look for the subject anew, never lock too."""
    row, state, now = doubtful.library.row(5), doubtful.library.state(5), doubtful.clock.now()
    locks = {"set_id", "choose", "confirm_top1", "replace_and_lock", "clear_id", "ignore", "lock_id", "sync_now"}
    for number, action in enumerate(
        (*sorted(locks), "rematch", "unlock_id", "lock_intro", "unlock_intro", "redo_intro")
    ):
        decide(doubtful.library, 5, action, pending_key=str(number), lock=True)
        effect = effect_of(Decision.from_row(doubtful.decisions()[-1]), row, state, now)
        assert (effect.state.get("douban_id_locked") is True) is (action in locks), action
