"""What is spoiled in a soak that went well, one thing at a time, and which invariant the auditor finds it under.

Each is a statement, how the invariant begins, and a part of what is said of it. Braces of JSON are doubled.
"""

from __future__ import annotations


def ids(*parts: str) -> str:
    """Return the first of a column's values, as a query in parentheses: the column, the table, the condition."""
    return f"(SELECT MIN({parts[0]}) FROM {parts[1]} WHERE {parts[2]})"


LINK_OF_3 = ids("change_id", "{own}log", "vod_id = 3 AND action = 'link'")
LOCK_OF_3 = ids("change_id", "{own}log", "vod_id = 3 AND action = 'lock_id' AND state = 'applied'")
INTRO_OF_1 = ids("change_id", "{own}log", "vod_id = 1 AND action = 'intro'")
SYNC_OF_6 = ids("decision_id", "{own}decision", "vod_id = 6 AND action = 'sync_now'")
LINKED_LOCK = ids("decision_id", "{own}log", "vod_id = 3 AND action = 'lock_id'")
INTRO_OF_6 = ids("change_id", "{own}log", "vod_id = 6 AND action = 'intro'")
NEVER = "'2099-01-01 00:00:00.000000'"
OPEN_TASK = "status = 'PENDING', open_key = vod_id || ':' || task_type"
LATER, EARLIER = "'2030-01-01 00:00:00.000000'", "'2020-01-01 00:00:00.000000'"
CHANGE = (
    "vod_id, shard, action, old_values, new_values, state_old, state_new, reason, operator, batch_id, run_id, owner, "
    "rule_version, task_id, verdict_id, decision_id, reverts_change_id, state, state_reason, prepared_at, applied_at"
)
MOMENTS = "prepared_at, applied_at"
TWICE_LATER = f"{LATER}, {LATER}"
IN_AN_HOUR = "strftime('%Y-%m-%d %H:%M:%f000', 'now', '+1 hour')"
ONE_NAME_OF_5 = (
    CHANGE.replace("vod_id", "5", 1)
    .replace("old_values, new_values", '\'{{"vod_director": "x"}}\', \'{{"vod_director": "y"}}\'')
    .replace("state_old, state_new", "'{{}}', '{{}}'")
    .replace(MOMENTS, f"{IN_AN_HOUR}, {IN_AN_HOUR}")
)
TASK = "vod_id, shard, task_type, stage, status, priority, run_after, attempts, last_error, run_id, created_at"

SPOILT = {
    "a column of ours that nobody wrote": (
        "UPDATE mac_vod SET vod_director = '无名氏' WHERE vod_id = 1",
        "every difference",
        "video 1: vod_director",
    ),
    "a column that is none of our business": (
        "UPDATE mac_vod SET vod_hits = 99 WHERE vod_id = 5",
        "every difference",
        "vod_hits",
    ),
    "a video that nobody deleted": ("DELETE FROM mac_vod WHERE vod_id = 6", "every difference", "video 6"),
    "a write that the log tells of twice": (
        f"INSERT INTO {{own}}log ({CHANGE}) SELECT {CHANGE} FROM {{own}}log WHERE change_id = {LINK_OF_3}",
        "every difference",
        "video 3",
    ),
    "a write of a foreign column": (
        f"UPDATE {{own}}log SET old_values = '{{{{\"vod_hits\": 0}}}}', new_values = '{{{{\"vod_hits\": 1}}}}' "
        f"WHERE change_id = {INTRO_OF_1}",
        "every difference",
        "writes vod_hits",
    ),
    "a write without a reason": (
        f"UPDATE {{own}}log SET reason = '' WHERE change_id = {INTRO_OF_1}",
        "every write has a reason",
        "has no reason",
    ),
    "a write without a batch": (
        f"UPDATE {{own}}log SET batch_id = '', operator = '' WHERE change_id = {INTRO_OF_1}",
        "every write has a reason",
        "no operator, no batch",
    ),
    "a link written over a locked id": (
        f"UPDATE {{own}}log SET prepared_at = {LATER}, applied_at = {LATER} WHERE change_id = {LINK_OF_3}",
        "nothing automatic changed",
        "while the id was locked",
    ),
    "an intro written over a locked one": (
        f"UPDATE {{own}}log SET prepared_at = {LATER}, applied_at = {LATER} WHERE vod_id = 7 AND action = 'intro'",
        "nothing automatic changed",
        "while the synopsis was locked",
    ),
    "a write into a video that is ignored": (
        f"INSERT INTO {{own}}log ({CHANGE}) SELECT {ONE_NAME_OF_5} FROM {{own}}log WHERE change_id = {LINK_OF_3}",
        "nothing automatic changed",
        "while it was ignored",
    ),
    "a write into a row that the site locked": (
        f"INSERT INTO {{own}}log ({CHANGE}) SELECT {CHANGE.replace('vod_id', '8', 1).replace(MOMENTS, TWICE_LATER)} "
        f"FROM {{own}}log WHERE change_id = {LINK_OF_3}",
        "nothing automatic changed",
        "while the row was locked in the CMS",
    ),
    "a task that is leased for ever": (
        "UPDATE {own}task SET status = 'RUNNING', open_key = vod_id || ':' || task_type, lease_owner = 'x', "
        "lease_until = '2099-01-01 00:00:00.000000' WHERE task_id = 1",
        "every open task",
        "longer than any lease",
    ),
    "a task without its key": (
        "UPDATE {own}task SET status = 'PENDING', open_key = NULL WHERE task_id = 1",
        "every open task",
        "is open under the key None",
    ),
    "a task that is over and keeps its key": (
        "UPDATE {own}task SET open_key = 'x' WHERE task_id = 1",
        "every open task",
        "is closed and keeps its key x",
    ),
    "a task that belongs to somebody without an end": (
        f"UPDATE {{own}}task SET {OPEN_TASK}, lease_owner = 'x', lease_until = NULL WHERE task_id = 1",
        "every open task",
        "belongs to x for ever",
    ),
    "a task that is put off for ever": (
        f"UPDATE {{own}}task SET {OPEN_TASK}, run_after = {NEVER} WHERE task_id = 1",
        "every open task",
        "waits until 2099-01-01",
    ),
    "a task of a step that there is not": (
        f"UPDATE {{own}}task SET {OPEN_TASK}, stage = 'nowhere' WHERE task_id = 1",
        "every open task",
        "waits for nowhere, which no step handles",
    ),
    "two tasks at once": (
        f"INSERT INTO {{own}}task ({TASK}, finished_at) SELECT {TASK.replace('created_at', EARLIER)}, {LATER} "
        "FROM {own}task WHERE task_id = 1",
        "no task overlaps",
        "while task",
    ),
    "a verdict that was written twice": (
        f"INSERT INTO {{own}}log ({CHANGE}) SELECT {CHANGE} FROM {{own}}log WHERE change_id = {LINK_OF_3}",
        "no task overlaps",
        "verdict_id",
    ),
    "a video that was never taken in": ("DELETE FROM {own}video WHERE vod_id = 2", "every video in the CMS", "video 2"),
    "a video that nobody will look at": (
        "UPDATE {own}video SET douban_next_sync_at = NULL WHERE vod_id = 2",
        "every video in the CMS",
        "no next visit",
    ),
    "a video that is visited in a lifetime": (
        f"UPDATE {{own}}video SET douban_next_sync_at = {NEVER} WHERE vod_id = 2",
        "every video in the CMS",
        "is next visited at 2099-01-01",
    ),
    "a video of another shard": (
        "UPDATE {own}video SET shard = 33 WHERE vod_id = 2",
        "every video in the CMS",
        "shard 33",
    ),
    "a decision that was forgotten": (
        f"UPDATE {{own}}decision SET state = 'pending', pending_key = 'x', created_at = {EARLIER} WHERE vod_id = 5",
        "every decision",
        "was forgotten",
    ),
    "a decision that waits for no task": (
        f"UPDATE {{own}}decision SET state = 'queued' WHERE decision_id = {SYNC_OF_6}",
        "every decision",
        "which is not open",
    ),
    "a decision that nothing applied": (
        "DELETE FROM {own}log WHERE vod_id = 5 AND action = 'ignore'",
        "every decision",
        "nothing in the log is of it",
    ),
    "a decision that was applied twice": (
        f"INSERT INTO {{own}}log ({CHANGE}) SELECT {CHANGE} FROM {{own}}log WHERE change_id = {LOCK_OF_3}",
        "every decision",
        "was applied by change",
    ),
    "a decision that is over and keeps its key": (
        f"UPDATE {{own}}decision SET pending_key = 'x' WHERE decision_id = {SYNC_OF_6}",
        "every decision",
        "holds the key x",
    ),
    "a decision in no known state": (
        f"UPDATE {{own}}decision SET state = 'lost' WHERE decision_id = {SYNC_OF_6}",
        "every decision",
        "is lost",
    ),
    "a decision that was refused without a word": (
        f"UPDATE {{own}}decision SET state = 'refused', state_reason = '' WHERE decision_id = {SYNC_OF_6}",
        "every decision",
        "was refused without a reason",
    ),
    "a decision that was refused and yet applied": (
        f"UPDATE {{own}}decision SET state = 'refused', state_reason = 'x' WHERE decision_id = {LINKED_LOCK}",
        "every decision",
        "was refused and yet written by",
    ),
    "too many tokens": ("UPDATE {own}intro SET prompt_tokens = 1000000000", "the language model", "tokens on"),
    "too dear intros": ("UPDATE {own}intro SET cost_usd = 3 WHERE vod_id < 8", "the language model", "USD"),
    "a change that was left half done": (
        f"UPDATE {{own}}log SET state = 'prepared', applied_at = NULL WHERE change_id = {INTRO_OF_1}",
        "no change is left half done",
        "never reconciled",
    ),
    "a change that nobody reverted": (
        f"UPDATE {{own}}log SET state = 'reverted' WHERE change_id = {INTRO_OF_1}",
        "no change is left half done",
        "no revert of it is applied",
    ),
    "a change in no known state": (
        f"UPDATE {{own}}log SET state = 'lost' WHERE change_id = {INTRO_OF_1}",
        "no change is left half done",
        "is in no known state",
    ),
    "a change of which nobody knows when it was applied": (
        f"UPDATE {{own}}log SET applied_at = NULL WHERE change_id = {INTRO_OF_1}",
        "no change is left half done",
        "was applied at None",
    ),
    "a change that names other columns before than after": (
        f"UPDATE {{own}}log SET old_values = '{{{{}}}}' WHERE change_id = {INTRO_OF_1}",
        "no change is left half done",
        "names other columns before than after",
    ),
    "a revert of what still is applied": (
        f"UPDATE {{own}}log SET reverts_change_id = {INTRO_OF_1} WHERE change_id = {INTRO_OF_6}",
        "no change is left half done",
        "which still is applied",
    ),
    "a revert of another video's change": (
        f"UPDATE {{own}}log SET reverts_change_id = {INTRO_OF_1} WHERE change_id = {INTRO_OF_6}",
        "no change is left half done",
        "of video 6 reverts change",
    ),
    "a lock that nobody set": (
        "UPDATE {own}video SET douban_id_locked = 1 WHERE vod_id = 1",
        "states agree",
        "douban_id_locked is True",
    ),
    "a lock that nobody took off": (
        "UPDATE {own}video SET intro_locked = 0 WHERE vod_id = 6",
        "states agree",
        "intro_locked is False",
    ),
    "a link that nobody made": ("UPDATE {own}video SET vod_douban_id = 4711 WHERE vod_id = 3", "states agree", "4711"),
    "an id in the CMS that nobody took in": (
        "UPDATE mac_vod SET vod_douban_id = 4711 WHERE vod_id = 9",
        "states agree",
        "the CMS holds the id 4711",
    ),
    "candidates without a verdict": (
        "DELETE FROM {own}verdict WHERE vod_id = 3",
        "verdicts, candidates",
        "refers to verdict",
    ),
    "an intro that was never written": (
        "UPDATE {own}intro SET change_id = NULL WHERE state = 'written'",
        "verdicts, candidates",
        "by no change",
    ),
    "an intro written by another video's change": (
        f"UPDATE {{own}}intro SET change_id = {LINK_OF_3} WHERE vod_id = 1",
        "verdicts, candidates",
        "of video 1 was written by change",
    ),
    "an intro that shares not the fate of its change": (
        f"UPDATE {{own}}intro SET state = 'withdrawn' WHERE change_id = {INTRO_OF_1}",
        "verdicts, candidates",
        "of video 1 is withdrawn, change",
    ),
    "a verdict that waits for ever": (
        "UPDATE {own}verdict SET state = 'pending' WHERE vod_id = 3",
        "verdicts, candidates",
        "its task is closed",
    ),
    "a batch that cannot be taken back": (
        f"UPDATE {{own}}log SET old_values = '{{{{}}}}', new_values = '{{{{\"vod_nonsense\": 1}}}}' "
        f"WHERE change_id = {INTRO_OF_1}",
        "a sample of batches",
        "vod_nonsense",
    ),
}
