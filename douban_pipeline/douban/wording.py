"""Chinese words for the states, kinds and origins of our rows, for the whole system."""

from __future__ import annotations

from collections.abc import Mapping

from douban_pipeline.douban.store.shown_status import ShownStatus
from douban_pipeline.douban.store.states import (
    ChangeState,
    DecisionAction,
    DecisionState,
    IdSource,
    IntroState,
    TaskStage,
    TaskStatus,
    TaskType,
    VerdictState,
)
from douban_pipeline.douban.writes.changes import EDITED, PIPELINE, RESTORE, REVERT
from douban_pipeline.douban.writes.intro_changes import INTRO

ACTIONS: Mapping[DecisionAction, str] = {
    DecisionAction.confirm_top1: "确认首选候选",
    DecisionAction.choose: "选择候选",
    DecisionAction.set_id: "指定豆瓣 ID",
    DecisionAction.replace_and_lock: "替换豆瓣 ID 并锁定",
    DecisionAction.clear_id: "清除豆瓣 ID",
    DecisionAction.ignore: "忽略",
    DecisionAction.lock_id: "锁定豆瓣 ID",
    DecisionAction.unlock_id: "解锁豆瓣 ID",
    DecisionAction.lock_intro: "锁定简介",
    DecisionAction.unlock_intro: "解锁简介",
    DecisionAction.rematch: "重新匹配",
    DecisionAction.redo_intro: "重写简介",
    DecisionAction.sync_now: "立即同步",
}
"""Words for actions, for reviewers."""

CHANGES: Mapping[str, str] = {
    "link": "关联条目",
    "sync": "同步字段",
    INTRO: "写入简介",
    REVERT: "撤销",
    RESTORE: "恢复锁定值",
    EDITED: "在 CMS 中改动",
    **{action.value: text for action, text in ACTIONS.items()},
}
COLUMNS: Mapping[str, str] = {
    "vod_name": "片名",
    "vod_sub": "别名",
    "vod_year": "年份",
    "vod_area": "地区",
    "vod_lang": "语言",
    "vod_class": "类型",
    "vod_director": "导演",
    "vod_actor": "主演",
    "vod_writer": "编剧",
    "vod_duration": "片长",
    "vod_total": "集数",
    "vod_tag": "标签",
    "vod_pubdate": "上映日期",
    "vod_pic": "海报",
    "vod_content": "简介",
    "vod_blurb": "短简介",
    "vod_douban_id": "豆瓣 ID",
    "vod_douban_score": "评分",
    "vod_score": "站内评分",
    "vod_score_all": "站内总分",
    "vod_score_num": "人数",
    "vod_state": "资源类别",
    "vod_author": "编辑",
    "vod_reurl": "来源地址",
}
"""Words for the CMS's columns that may be written."""

CHANGE_STATES: Mapping[str, str] = {
    ChangeState.PREPARED: "待写入",
    ChangeState.APPLIED: "有效",
    ChangeState.REFUSED: "被拒绝",
    ChangeState.ABANDONED: "未发生",
    ChangeState.CONFLICT: "有冲突",
    ChangeState.REVERTED: "已撤销",
}
DECISION_STATES: Mapping[str, str] = {
    DecisionState.PENDING: "等待执行",
    DecisionState.QUEUED: "已排队",
    DecisionState.APPLIED: "已执行",
    DecisionState.REFUSED: "被拒绝",
    DecisionState.REVERTED: "已撤销",
}
REVIEW_STATUSES: Mapping[str, str] = {
    ShownStatus.UNCHECKED: "未检查",
    ShownStatus.NOT_FOUND: "未找到",
    ShownStatus.REVIEW: "待审核",
    ShownStatus.HELD: "等待回答",
    ShownStatus.CONFIRMED: "已确认",
    ShownStatus.IGNORED: "已忽略",
}
NEVER_SEARCHED = "尚未查找"
"""Shown as the reason of a video that has none yet."""

VERDICTS: Mapping[str, str] = {
    "CONFIRMED": "自动确认",
    "REVIEW": "待审核",
    "NOT_FOUND": "未找到",
    "UNDECIDED": "暂不判断",
}
"""Statuses of verdicts; see `matching.Status`."""

VERDICT_STATES: Mapping[str, str] = {
    VerdictState.PENDING: "待写入",
    VerdictState.APPLIED: "已采用",
    VerdictState.REFUSED: "被拒绝",
    VerdictState.SUPERSEDED: "被取代",
    VerdictState.DRY_RUN: "演练",
}
INTRO_STATES: Mapping[str, str] = {
    IntroState.WRITTEN: "已写入",
    IntroState.REFUSED: "未通过",
    IntroState.FAILED: "调用失败",
    IntroState.PREVIEW: "仅预览",
    IntroState.WITHDRAWN: "已撤回",
}
TASK_TYPES: Mapping[str, str] = {
    TaskType.MATCH_DOUBAN_ID: "匹配条目",
    TaskType.SYNC_DOUBAN: "更新字段",
    TaskType.AI_INTRO: "AI 简介",
    TaskType.RECHECK: "复查",
}
TASK_STATUSES: Mapping[str, str] = {
    TaskStatus.PENDING: "排队",
    TaskStatus.RUNNING: "进行中",
    TaskStatus.SUCCESS: "成功",
    TaskStatus.FAIL: "失败",
    TaskStatus.SKIP: "跳过",
}
TASK_STAGES: Mapping[str, str] = {
    TaskStage.SEARCH: "搜索",
    TaskStage.SCORE: "判定",
    TaskStage.SYNC: "写入",
    TaskStage.INTRO: "简介",
}
RECHECK_REASONS: Mapping[str, str] = {
    "facts": "条目资料有变",
    "names": "所依据的片名确认已撤回",
    "rules": "规则已更新",
    "age": "久未复查",
}
"""Why a link is judged again automatically; see `chain.match.due_rechecks`."""

VIOLATIONS: Mapping[str, str] = {
    "length": "字数不符",
    "address": "网址",
    "contact": "联系方式",
    "markup": "标记或代码",
    "emoji": "表情符号",
    "number": "资料外的数字",
    "title": "别的作品名",
    "person": "资料外的人名",
    "claim": "评价、奖项等说法",
    "advert": "推广用语",
    "meta": "谈论简介本身",
    "plot": "原简介中没有的情节",
    "reading": "复核认为没有依据",
    "cut": "没有依据而删去的句子",
    "copy": "照抄原简介",
    "near_copy": "与他片雷同",
}
"""Kinds of violations of the fact guard; see `intros.factguard`."""

ID_SOURCES: Mapping[str, str] = {
    IdSource.PERSON: "人工指定",
    IdSource.IMPORT: "表格导入",
    IdSource.AUTO: "自动匹配",
    IdSource.AI_SEARCH: "联网搜索匹配",
    IdSource.CMS: "CMS 原有",
    "": "无",
}
"""Sources of ids."""

OPERATORS: Mapping[str, str] = {PIPELINE: "自动", "cms": "CMS 变动"}
"""Operators of changes; people are shown by their names."""


DRIFT_KINDS: Mapping[str, str] = {
    "locked": "锁定的值被改",
    "id": "豆瓣 ID 被改",
    "put_back": "被改回写入之前的值",
    "apart": "简介仍是写入的，显示的摘要却不是它的开头",
    "edited": "之后的普通改动",
}
"""Kinds of differences by severity; see `drift.DriftKind`."""

DRIFT_LOOKS: Mapping[str, str] = {
    "stale_form": "过期的后台表单",
    "saved": "CMS 保存或采集更新",
    "program": "其他程序直接改库或批量编辑",
    "annotated": "采纳的 AI 标注、批量编辑或其他程序直接改库",
    "unknown": "不详（写入时可能已是这样）",
}
"""Likely causes of a changed value; see `drift.DriftCause`."""

SOURCE_NAMES: Mapping[str, str] = {
    "douban": "豆瓣",
    "searxng": "SearXNG 搜索",
    "douban_suggest": "豆瓣联想",
    "bocha": "博查搜索",
    "openrouter": "语言模型",
    "posters": "海报图片",
}
"""Sources that are called over the network; see `upkeep.gates`."""

PROFILES: Mapping[str, str] = {"plan": "plan（逐项相加）", "calibrated": "calibrated（按可比部分的占比）"}
"""Score profiles; see `matching.profiles`."""

ALERT_KINDS: Mapping[str, str] = {
    "breaker": "数据源熔断",
    "failing": "连续失败",
    "budget": "预算用完",
    "guard": "守卫未通过",
    "run": "运行失败",
    "question": "等待回答",
}
"""Kinds of alerts; see `reports.health.causes`."""


def word_for(words: Mapping[str, str], key: str) -> str:
    """Return the word for ``key``, or ``key`` itself if there is none."""
    return words.get(key, key)
