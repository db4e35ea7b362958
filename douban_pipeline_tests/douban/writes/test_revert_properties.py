"""Whatever was written, edited and locked: a dry run says what happens, and a revert taken back leaves no trace."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.harness.fixtures.library import Library, video

VIDEOS = (7, 8)
COLUMNS = ("vod_douban_id", "vod_year", "vod_content")
RHYTHM = {"douban_last_sync_at", "douban_next_sync_at", "intro_ai_last_at"}

values = st.integers(0, 3)
writes = st.tuples(
    st.just("write"),
    st.sampled_from(VIDEOS),
    st.dictionaries(st.sampled_from(COLUMNS), values, min_size=1),
    st.sampled_from(("pipeline", "李")),
    st.sampled_from(("a", "b")),
)
locks = st.tuples(
    st.just("lock"),
    st.sampled_from(VIDEOS),
    st.sampled_from(("douban_id_locked", "intro_locked")),
    st.booleans(),
    st.sampled_from(("a", "b")),
)
notes = st.tuples(st.just("note"), st.sampled_from(VIDEOS), st.sampled_from(("a", "b")))
edits = st.tuples(st.just("edit"), st.sampled_from(VIDEOS), st.sampled_from(COLUMNS), values)
undoings = st.tuples(st.just("undo"), st.sampled_from(("a", "b", "step")))
acts = st.lists(st.one_of(writes, writes, locks, notes, edits, undoings), max_size=8)
selections = st.sampled_from(
    (
        *({"batch_id": "a"}, {"batch_id": "b"}, {"run_id": "a"}, {"reviewer": "李"}, {"reviewer": "pipeline"}),
        *({"vod_ids": (7,)}, {"vod_ids": VIDEOS}, {"vod_ids": (8,), "batch_id": "a"}, {"rule_version": "test"}),
    )
)


def value_of(column: str, number: int) -> object:
    return number if column == "vod_douban_id" else f"值{number}"


def do(library: Library, act: tuple) -> None:
    kind = act[0]
    if kind == "write":
        _, vod_id, numbers, operator, batch = act
        row = library.row(vod_id)
        new = {column: value_of(column, number) for column, number in numbers.items()}
        state = {"vod_douban_id": new["vod_douban_id"]} if "vod_douban_id" in new else {}
        old = {column: row[column] for column in new}
        change = Change(vod_id, "sync", old, new, state, operator=operator, automatic=operator == "pipeline")
        library.change_log(batch, batch_id=batch).write([change])
    elif kind == "lock":
        _, vod_id, lock, on, batch = act
        change = Change(vod_id, "lock", {}, {}, {lock: on}, operator="李", automatic=False)
        library.change_log(batch, batch_id=batch).write([change])
    elif kind == "note":
        _, vod_id, batch = act
        text = {"vod_content": library.row(vod_id)["vod_content"]}
        change = Change(vod_id, "lock_intro", text, text, {"intro_locked": True}, operator="李", automatic=False)
        library.change_log(batch, batch_id=batch).write([change])
    elif kind == "edit":
        _, vod_id, column, number = act
        library.set_cms(vod_id, **{column: value_of(column, number)})
    else:
        chosen = ChangeSelection(vod_ids=VIDEOS) if act[1] == "step" else ChangeSelection(batch_id=act[1])
        revert(library.change_log("undo", batch_id="b"), chosen, operator="王", reason="试", dry_run=False)


def reported(library: Library) -> dict[int, dict[str, object]]:
    return {
        vod_id: {name: value for name, value in state.items() if name not in RHYTHM}
        for vod_id, state in library.states().items()
    }


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(history=acts, selection=selections)
def test_a_dry_run_tells_what_happens_and_a_revert_taken_back_leaves_no_trace(shared_library, history, selection):
    library = shared_library.renewed([video(vod_id) for vod_id in VIDEOS])
    for act in history:
        do(library, act)
        library.clock.advance(minutes=1)
    chosen = ChangeSelection(**selection)
    before, states, log = library.all_bytes(), reported(library), library.log()

    planned = revert(library.change_log("r"), chosen, operator="王", reason="试", dry_run=True)
    assert (library.all_bytes(), reported(library), library.log()) == (before, states, log)

    batch = library.change_log("r", batch_id="taken back")
    assert revert(batch, chosen, operator="王", reason="试", dry_run=False) == planned
    assert all(set(item.restored).isdisjoint(item.skipped) for item in planned)

    back = revert(
        library.change_log("r", batch_id="again"),
        ChangeSelection(batch_id="taken back"),
        operator="王",
        reason="",
        dry_run=False,
    )
    assert [item for item in back if item.skipped] == []
    assert library.all_bytes() == before
    assert reported(library) == states
    assert [row["state"] for row in library.log()[: len(log)]] == [row["state"] for row in log]
