"""Why the current link of a video is in doubt, checked before its fields are synced. A person settles doubts."""

from __future__ import annotations

from douban_pipeline.core.database import reading
from douban_pipeline.douban.chain.match.descriptions import confirmed_subject, earlier_evidence
from douban_pipeline.douban.chain.match.rechecks import LOCK_LABEL
from douban_pipeline.douban.chain.sync.sync_items import SyncItem
from douban_pipeline.douban.evidence.added_facts import Added, against, with_added
from douban_pipeline.douban.match_inputs import profile_of, subject_facts
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.douban.store.states import BY_PEOPLE
from douban_pipeline.matching import compare
from douban_pipeline.matching.site_videos import video_facts


def choice_doubt(item: SyncItem) -> str | None:
    """Return what people decided that the current id contradicts, in Chinese; None for nothing."""
    current = item.state["vod_douban_id"]
    if item.state["douban_id_locked"]:
        return None
    if item.chosen not in (None, current):
        return f"审核员选定的是 {item.chosen}，现关联的却是 {current}"
    if item.state["douban_id_source"] not in BY_PEOPLE and current in item.undone.get("vod_douban_id", ()):
        return f"关联 {current} 曾被人工撤销，却又出现在 CMS 中"
    return None


def missing_doubt(item: SyncItem) -> str:
    """Return the doubt about a link whose subject Douban no longer has."""
    current = item.state["vod_douban_id"]
    if item.state["douban_id_locked"]:
        return f"{LOCK_LABEL}：锁定的豆瓣 ID {current} 已不存在"
    return f"豆瓣条目 {current} 已不存在"


def subject_doubt(services: Services, item: SyncItem, record: SubjectRecord) -> str | None:
    """Return why the current id cannot be this video's, None if it can.

    Public converters write one constant id into every record, so an id that came with the row is checked. A person's
    choice is not doubted; if it is also locked, this applies only to what the person accepted: other conflicts appeared
    later, and the lock would hide them.
    """
    locked = item.state["douban_id_locked"]
    if item.accepted if locked else item.state["douban_id_source"] in BY_PEOPLE:
        return None
    video = video_facts(item.row, services.cms, services.categories)
    profile = profile_of(services.settings)
    subject = subject_facts(record)
    comparison = compare(video, subject, profile.weights, profile.thresholds)
    if not comparison.exclusions:
        return None
    added: Added | None = None
    if not against(comparison):
        # Only the names are too far: what was added when the link was judged may bridge that.
        with reading(services.engine) as connection:
            added = earlier_evidence(services, connection, [video.vod_id]).get(video.vod_id)
            judged = confirmed_subject(services, connection, video.vod_id)
        if added is not None and added.expired and judged == record.douban_id:
            # What bridged it then has expired and cannot be compared again: a recheck does, with what TMDB says now.
            return None
        if added is not None:
            comparison = compare(with_added(video, added), subject, profile.weights, profile.thresholds)
            if not comparison.exclusions:
                return None
    conflicts = "；".join(finding.text for finding in comparison.exclusions)
    if added is not None:
        conflicts = added.without_values(conflicts)
    known = f"{LOCK_LABEL}：锁定的豆瓣 ID" if locked else "已有豆瓣 ID"
    return f"{known} {record.douban_id}（{record.title}）与影片不符：{conflicts}"
