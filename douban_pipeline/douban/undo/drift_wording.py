"""What this room calls differences between log and CMS, in Chinese."""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    "locked": "锁定的值被改",
    "id": "豆瓣 ID 被改",
    "put_back": "被改回写入之前的值",
    "edited": "之后的普通改动",
}
"""How grave a difference is; see `drift.Kind`."""

LOOKS: Mapping[str, str] = {
    "stale_form": "过期的后台表单",
    "saved": "CMS 保存或采集更新",
    "program": "其他程序直接改库或批量编辑",
}
"""Who it looks like that changed a value; see `drift.Looks`."""
