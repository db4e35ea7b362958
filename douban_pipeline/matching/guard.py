"""Final check before a write, on plain values: whether a CONFIRMED verdict would violate a rule.

The asset checks show its results for stored verdicts; the write path runs it again for every row. It does not rely on
how the verdict was reached and uses none of the matcher's types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from douban_pipeline.matching.codes import SENTENCES, Code
from douban_pipeline.matching.weights import Thresholds

HARD_REJECT = "HARD_REJECT"
SCORE_UNDER_THRESHOLD = "SCORE_UNDER_THRESHOLD"
LEAD_UNDER_THRESHOLD = "LEAD_UNDER_THRESHOLD"
SOURCE_DEGRADED = "SOURCE_DEGRADED"
LOCKED = "LOCKED"
IGNORED = "IGNORED"
OTHER_PROFILE = "OTHER_PROFILE"
STRATUM_BRAKED = "STRATUM_BRAKED"
PERSON_CHOSE_OTHER = "PERSON_CHOSE_OTHER"

VIOLATION_SENTENCES: Mapping[str, str] = {
    HARD_REJECT: "已确认的条目带有硬性排除项",
    SCORE_UNDER_THRESHOLD: "已确认的条目得分低于确认线",
    LEAD_UNDER_THRESHOLD: "已确认的条目与次优候选差距不足",
    SOURCE_DEGRADED: "已确认的条目来自异常的数据来源或不完整的候选",
    LOCKED: "视频的豆瓣 ID 已锁定，不得改写",
    IGNORED: "视频已被忽略，不得改写",
    OTHER_PROFILE: "判定所用的评分方案已不是现行方案",
    STRATUM_BRAKED: SENTENCES[Code.STRATUM_BRAKED],
    PERSON_CHOSE_OTHER: "审核员为这部影片选定了另一条目",
}
"""A sentence for every violation."""


def violations(
    *,
    verdict: str,
    score: float | None,
    lead: float | None,
    rejects: Sequence[str],
    complete: bool,
    source_healthy: bool,
    locked: bool,
    ignored: bool,
    profile_in_force: bool,
    braked: bool,
    chosen_otherwise: bool,
    thresholds: Thresholds,
) -> tuple[str, ...]:
    """Return the rules a CONFIRMED verdict breaks, in a fixed order; nothing for any other verdict.

    Args:
        verdict: The stored status.
        score: Points of the confirmed candidate; a missing score is under every threshold.
        lead: Points by which it leads the next work, None when there was none.
        rejects: Its hard rejects.
        complete: Whether no search failed that could still have found the subject; an incomplete set counts as a
            degraded source.
        source_healthy: Whether no call to a source of candidates failed.
        locked: Whether the video's Douban id is locked.
        ignored: Whether the video is ignored.
        profile_in_force: Whether the score is of the current profile; scores of other profiles are not comparable.
        braked: Whether the verdict belongs to a stratum in which nothing is confirmed at present.
        chosen_otherwise: Whether a person chose another subject for the video.
        thresholds: The current limits.
    """
    if verdict != "CONFIRMED":
        return ()
    broken = {
        HARD_REJECT: bool(rejects),
        # Written so that NaN also counts as under the threshold.
        SCORE_UNDER_THRESHOLD: score is None or not score >= thresholds.confirm,
        LEAD_UNDER_THRESHOLD: lead is not None and not lead >= thresholds.lead,
        SOURCE_DEGRADED: not complete or not source_healthy,
        LOCKED: locked,
        IGNORED: ignored,
        OTHER_PROFILE: not profile_in_force,
        STRATUM_BRAKED: braked,
        PERSON_CHOSE_OTHER: chosen_otherwise,
    }
    return tuple(code for code, is_broken in broken.items() if is_broken)
