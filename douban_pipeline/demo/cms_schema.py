"""The schema of maccms10 as data: `mac_vod` and `mac_type`, column by column, and a typical category tree.

For the demo library and for tests only. The pipeline itself never creates or alters a CMS table. Types, defaults
and indexes are those of the CMS's own `install.sql` (2026), and of the releases of 2022 to 2025 in the classic form.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

Form = Literal["head", "classic"]
"""``head``: the releases of 2026, 87 columns of `mac_vod`. ``classic``: those of 2022 to 2025, 82 columns."""

_PREFIX = re.compile(r"[a-z0-9_]{0,20}")
_WORD = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class CmsColumn:
    """One column of a CMS table.

    Attributes:
        name: Its name.
        type: Its type as MariaDB writes it, e.g. ``int(10) unsigned``.
        default: Its default as text; ``None`` if the CMS declares none. An INSERT in strict mode must name
            such a column (error 1364), except the key and nullable columns.
        nullable: Whether it may be NULL; only one of the CMS's columns may.
        indexed: Whether it has an index of its own, named after it.
        since_2026: Whether it was added in the releases of 2026.
    """

    name: str
    type: str
    default: str | None = ""
    nullable: bool = False
    indexed: bool = False
    since_2026: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it holds text rather than a number."""
        return self.type.startswith(("varchar", "char")) or self.type.endswith("text")

    @property
    def width(self) -> int | None:
        """Maximum length in characters, ``None`` for numbers and for text without such a limit."""
        found = re.fullmatch(r"(?:var)?char\((\d+)\)", self.type)
        return int(found[1]) if found else None

    @property
    def fallback(self) -> str | int | float | None:
        """The CMS's value if none is known: the default, and ``''`` for text without one."""
        if self.nullable:
            return None
        if self.is_text:
            return self.default or ""
        return float(self.default or 0) if self.type.startswith("decimal") else int(self.default or 0)


VOD_COLUMNS = (
    CmsColumn("vod_id", "int(10) unsigned", None),
    CmsColumn("type_id", "smallint(6)", "0", indexed=True),
    CmsColumn("type_id_1", "smallint(6) unsigned", "0", indexed=True),
    CmsColumn("group_id", "smallint(6) unsigned", "0", indexed=True),
    CmsColumn("vod_name", "varchar(255)", indexed=True),
    CmsColumn("vod_sub", "varchar(255)"),
    CmsColumn("vod_en", "varchar(255)", indexed=True),
    CmsColumn("vod_status", "tinyint(1) unsigned", "0"),
    CmsColumn("vod_audit_remark", "varchar(255)", since_2026=True),
    CmsColumn("vod_letter", "char(1)", indexed=True),
    CmsColumn("vod_color", "varchar(6)"),
    CmsColumn("vod_tag", "varchar(100)", indexed=True),
    CmsColumn("vod_class", "varchar(255)", indexed=True),
    CmsColumn("vod_pic", "varchar(1024)"),
    CmsColumn("vod_pic_thumb", "varchar(1024)"),
    CmsColumn("vod_pic_slide", "varchar(1024)"),
    CmsColumn("vod_pic_original", "varchar(1024)", since_2026=True),
    CmsColumn("vod_pic_screenshot", "text", None, nullable=True),
    CmsColumn("vod_actor", "varchar(255)", indexed=True),
    CmsColumn("vod_director", "varchar(255)", indexed=True),
    CmsColumn("vod_writer", "varchar(100)"),
    CmsColumn("vod_behind", "varchar(100)"),
    CmsColumn("vod_blurb", "varchar(255)"),
    CmsColumn("vod_remarks", "varchar(100)"),
    CmsColumn("vod_pubdate", "varchar(100)"),
    CmsColumn("vod_publish_time", "int(10) unsigned", "0", indexed=True, since_2026=True),
    CmsColumn("vod_total", "mediumint(8) unsigned", "0", indexed=True),
    CmsColumn("vod_serial", "varchar(20)", "0"),
    CmsColumn("vod_tv", "varchar(30)"),
    CmsColumn("vod_weekday", "varchar(30)"),
    CmsColumn("vod_area", "varchar(20)", indexed=True),
    CmsColumn("vod_lang", "varchar(10)", indexed=True),
    CmsColumn("vod_year", "varchar(10)", indexed=True),
    CmsColumn("vod_version", "varchar(30)", indexed=True),
    CmsColumn("vod_state", "varchar(30)", indexed=True),
    CmsColumn("vod_author", "varchar(60)"),
    CmsColumn("vod_jumpurl", "varchar(150)"),
    CmsColumn("vod_tpl", "varchar(30)"),
    CmsColumn("vod_tpl_play", "varchar(30)"),
    CmsColumn("vod_tpl_down", "varchar(30)"),
    CmsColumn("vod_isend", "tinyint(1) unsigned", "0", indexed=True),
    CmsColumn("vod_lock", "tinyint(1) unsigned", "0", indexed=True),
    CmsColumn("vod_level", "tinyint(1) unsigned", "0", indexed=True),
    CmsColumn("vod_copyright", "tinyint(1) unsigned", "0"),
    CmsColumn("vod_points", "smallint(6) unsigned", "0"),
    CmsColumn("vod_points_play", "smallint(6) unsigned", "0", indexed=True),
    CmsColumn("vod_points_down", "smallint(6) unsigned", "0", indexed=True),
    CmsColumn("vod_hits", "mediumint(8) unsigned", "0", indexed=True),
    CmsColumn("vod_hits_day", "mediumint(8) unsigned", "0", indexed=True),
    CmsColumn("vod_hits_week", "mediumint(8) unsigned", "0", indexed=True),
    CmsColumn("vod_hits_month", "mediumint(8) unsigned", "0", indexed=True),
    CmsColumn("vod_duration", "varchar(10)"),
    CmsColumn("vod_up", "mediumint(8) unsigned", "0", indexed=True),
    CmsColumn("vod_down", "mediumint(8) unsigned", "0", indexed=True),
    CmsColumn("vod_score", "decimal(3,1) unsigned", "0.0", indexed=True),
    CmsColumn("vod_score_all", "mediumint(8) unsigned", "0", indexed=True),
    CmsColumn("vod_score_num", "mediumint(8) unsigned", "0", indexed=True),
    CmsColumn("vod_time", "int(10) unsigned", "0", indexed=True),
    CmsColumn("vod_time_add", "int(10) unsigned", "0", indexed=True),
    CmsColumn("vod_time_hits", "int(10) unsigned", "0"),
    CmsColumn("vod_time_make", "int(10) unsigned", "0", indexed=True),
    CmsColumn("vod_recycle_time", "int(10) unsigned", "0", since_2026=True),
    CmsColumn("vod_trysee", "smallint(6) unsigned", "0"),
    CmsColumn("vod_douban_id", "int(10) unsigned", "0"),
    CmsColumn("vod_douban_score", "decimal(3,1) unsigned", "0.0"),
    CmsColumn("vod_reurl", "varchar(255)"),
    CmsColumn("vod_rel_vod", "varchar(255)"),
    CmsColumn("vod_rel_art", "varchar(255)"),
    CmsColumn("vod_pwd", "varchar(10)"),
    CmsColumn("vod_pwd_url", "varchar(255)"),
    CmsColumn("vod_pwd_play", "varchar(10)"),
    CmsColumn("vod_pwd_play_url", "varchar(255)"),
    CmsColumn("vod_pwd_down", "varchar(10)"),
    CmsColumn("vod_pwd_down_url", "varchar(255)"),
    CmsColumn("vod_content", "mediumtext", None),
    CmsColumn("vod_play_from", "varchar(255)"),
    CmsColumn("vod_play_server", "varchar(255)"),
    CmsColumn("vod_play_note", "varchar(255)"),
    CmsColumn("vod_play_url", "mediumtext", None),
    CmsColumn("vod_down_from", "varchar(255)"),
    CmsColumn("vod_down_server", "varchar(255)"),
    CmsColumn("vod_down_note", "varchar(255)"),
    CmsColumn("vod_down_url", "mediumtext", None),
    CmsColumn("vod_plot", "tinyint(1) unsigned", "0", indexed=True),
    CmsColumn("vod_plot_name", "mediumtext", None),
    CmsColumn("vod_plot_detail", "mediumtext", None),
    CmsColumn("vod_share_count", "int(10) unsigned", "0", since_2026=True),
)
"""`mac_vod`; its first column is the primary key."""

TYPE_COLUMNS = (
    CmsColumn("type_id", "smallint(6) unsigned", None),
    CmsColumn("type_name", "varchar(60)", indexed=True),
    CmsColumn("type_en", "varchar(60)", indexed=True),
    CmsColumn("type_sort", "smallint(6) unsigned", "0", indexed=True),
    CmsColumn("type_mid", "smallint(6) unsigned", "1", indexed=True),
    CmsColumn("type_pid", "smallint(6) unsigned", "0", indexed=True),
    CmsColumn("type_status", "tinyint(1) unsigned", "1"),
    CmsColumn("type_tpl", "varchar(30)"),
    CmsColumn("type_tpl_list", "varchar(30)"),
    CmsColumn("type_tpl_detail", "varchar(30)"),
    CmsColumn("type_tpl_play", "varchar(30)"),
    CmsColumn("type_tpl_down", "varchar(30)"),
    CmsColumn("type_key", "varchar(255)"),
    CmsColumn("type_des", "varchar(255)"),
    CmsColumn("type_title", "varchar(255)"),
    CmsColumn("type_union", "varchar(255)"),
    CmsColumn("type_extend", "text", None),
    CmsColumn("type_logo", "varchar(255)"),
    CmsColumn("type_pic", "varchar(1024)"),
    CmsColumn("type_jumpurl", "varchar(150)"),
)
"""`mac_type`; its first column is the primary key."""


def table_columns(form: Form = "head") -> dict[str, tuple[CmsColumn, ...]]:
    """Return the columns of ``vod`` and ``type`` (names without prefix) in ``form``, in order.

    Raises:
        ValueError: ``form`` is neither ``head`` nor ``classic``.
    """
    if form not in ("head", "classic"):
        raise ValueError(f"there is no form {form!r} of the CMS's schema: use 'head' or 'classic'")
    vod = tuple(column for column in VOD_COLUMNS if form == "head" or not column.since_2026)
    return {"vod": vod, "type": TYPE_COLUMNS}


def checked_prefix(prefix: str) -> str:
    """Return ``prefix`` if it can start a table's name.

    Raises:
        ValueError: It is not up to 20 lower-case letters, digits and underscores.
    """
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(f"table prefix {prefix!r}: up to 20 of a-z, 0-9 and _ are allowed")
    return prefix


def mysql_ddl(prefix: str = "mac_", form: Form = "head", engine: str = "MyISAM", charset: str = "utf8") -> list[str]:
    """Return the statements that create the CMS's tables on MariaDB or MySQL, as the CMS's installer does.

    The collation is given explicitly, because newer servers no longer default to the ``_general_ci`` for which the CMS
    was written. MyISAM keys are limited to 1000 bytes: use InnoDB with ``utf8mb4``.

    Raises:
        ValueError: An argument is not one of the allowed values.
    """
    for what, value in (("engine", engine), ("charset", charset)):
        if not _WORD.fullmatch(value):
            raise ValueError(f"{what} {value!r}: letters, digits and _ are allowed")
    statements = []
    for name, columns in table_columns(form).items():
        key, *others = columns
        lines = [
            f"`{key.name}` {key.type} NOT NULL AUTO_INCREMENT",
            *(_mysql_column(column) for column in others),
            f"PRIMARY KEY (`{key.name}`)",
            *(f"KEY `{column.name}` (`{column.name}`)" for column in others if column.indexed),
        ]
        body = ",\n  ".join(lines)
        statements.append(
            f"CREATE TABLE IF NOT EXISTS `{checked_prefix(prefix)}{name}` (\n  {body}\n) "
            f"ENGINE={engine} DEFAULT CHARSET={charset} COLLATE={charset}_general_ci"
        )
    return statements


def sqlite_ddl(prefix: str = "mac_", form: Form = "head") -> list[str]:
    """Return the statements that create the same tables and indexes in SQLite.

    Declared text types keep their widths (``VARCHAR(255)``), so that tools can read them although SQLite does not
    enforce them; integers lose MySQL's display width, which readers of SQLite schemas do not understand. Ids are never
    reused, as on MySQL. Text compares byte by byte, unlike the CMS's ``_general_ci``.

    Raises:
        ValueError: An argument is not one of the allowed values.
    """
    statements = []
    for name, columns in table_columns(form).items():
        table = f"{checked_prefix(prefix)}{name}"
        key, *others = columns
        lines = [
            f'"{key.name}" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT',
            *(_sqlite_column(column) for column in others),
        ]
        body = ",\n  ".join(lines)
        statements.append(f'CREATE TABLE IF NOT EXISTS "{table}" (\n  {body}\n)')
        statements += [
            f'CREATE INDEX IF NOT EXISTS "ix_{table}_{column.name}" ON "{table}" ("{column.name}")'
            for column in others
            if column.indexed
        ]
    return statements


def _mysql_column(column: CmsColumn) -> str:
    if column.nullable:
        return f"`{column.name}` {column.type} NULL"
    default = "" if column.default is None else f" DEFAULT '{column.default}'"
    return f"`{column.name}` {column.type} NOT NULL{default}"


def _sqlite_column(column: CmsColumn) -> str:
    if column.nullable:
        return f'"{column.name}" {column.type.upper()} NULL'
    # SQLite's grammar requires the brackets last: no UNSIGNED after DECIMAL(3,1).
    kind = re.sub(r"INT\(\d+\)", "INT", column.type.upper()).replace(") UNSIGNED", ")")
    default = ""
    if column.default is not None:
        literal = f"'{column.default}'" if column.is_text else column.default
        default = f" DEFAULT {literal}"
    return f'"{column.name}" {kind} NOT NULL{default}'


_LANGUAGES = "国语,英语,粤语,闽南语,韩语,日语,法语,德语,其它"
_YEARS = ",".join(str(year) for year in range(2026, 1999, -1))
_STATES = "正片,预告片,花絮"
_VERSIONS = "高清版,剧场版,抢先版,OVA,TV,影院版"

_FILTERS: dict[int, dict[str, str]] = {
    1: {
        "class": "喜剧,爱情,恐怖,动作,科幻,剧情,战争,警匪,犯罪,动画,奇幻,武侠,冒险,枪战,悬疑,惊悚,经典,青春,文艺,"
        "微电影,古装,历史,运动,农村,儿童,网络电影",
        "area": "大陆,香港,台湾,美国,韩国,日本,泰国,新加坡,马来西亚,印度,英国,法国,加拿大,西班牙,俄罗斯,其它",
        "lang": _LANGUAGES,
        "year": _YEARS,
        "state": _STATES,
        "version": _VERSIONS,
    },
    2: {
        "class": "古装,战争,青春偶像,喜剧,家庭,犯罪,动作,奇幻,剧情,历史,经典,乡村,情景,商战,网剧,其它",
        "area": "内地,韩国,香港,台湾,日本,美国,泰国,英国,新加坡,其它",
        "lang": _LANGUAGES,
        "year": _YEARS,
        "state": _STATES,
        "version": _VERSIONS,
    },
    3: {
        "class": "选秀,情感,访谈,播报,旅游,音乐,美食,纪实,曲艺,生活,游戏互动,财经,求职",
        "area": "内地,港台,日韩,欧美",
        "lang": _LANGUAGES,
        "year": _YEARS,
    },
    4: {
        "class": "情感,科幻,热血,推理,搞笑,冒险,校园,动作,机战,运动,战争,少年,少女,社会,原创,亲子,益智,励志,其它",
        "area": "国产,日本,欧美,其它",
        "lang": _LANGUAGES,
        "year": _YEARS,
        "version": "TV版,电影版,OVA版,真人版",
    },
}

_TYPES = (
    (1, "电影", "dianying", 0),
    (2, "连续剧", "lianxuju", 0),
    (3, "综艺", "zongyi", 0),
    (4, "动漫", "dongman", 0),
    (5, "资讯", "zixun", 0),
    (6, "动作片", "dongzuopian", 1),
    (7, "喜剧片", "xijupian", 1),
    (8, "爱情片", "aiqingpian", 1),
    (9, "科幻片", "kehuanpian", 1),
    (10, "恐怖片", "kongbupian", 1),
    (11, "剧情片", "juqingpian", 1),
    (12, "战争片", "zhanzhengpian", 1),
    (13, "国产剧", "guochanju", 2),
    (14, "港台剧", "gangtaiju", 2),
    (15, "日韩剧", "rihanju", 2),
    (16, "欧美剧", "oumeiju", 2),
    (17, "公告", "gonggao", 5),
    (18, "头条", "toutiao", 5),
    (19, "纪录片", "jilupian", 1),
    (20, "伦理片", "lunlipian", 1),
    (21, "国产动漫", "guochandongman", 4),
    (22, "日韩动漫", "rihandongman", 4),
    (23, "欧美动漫", "oumeidongman", 4),
    (24, "短剧", "duanju", 2),
)
_NEWS = 5
"""The root category whose types contain articles (`type_mid` 2), not videos."""


def default_types() -> list[dict[str, Any]]:
    """Return the rows of `mac_type` of a site with the classic category tree and common additions.

    Ids 1 to 18 are the CMS's own (5, 17 and 18 are articles); 19 to 24 are 纪录片 and 伦理片 under 电影, three kinds
    of 动漫, and 短剧 under 连续剧. `type_extend` is JSON text as PHP writes it; all values are comma-separated lists:
    the words of the site's filter bar. An empty value is inherited from the parent.
    """
    keys = ("class", "area", "lang", "year", "star", "director", "state", "version")
    return [
        {
            "type_id": type_id,
            "type_name": name,
            "type_en": slug,
            "type_sort": sum(1 for other in _TYPES if other[3] == parent and other[0] <= type_id),
            "type_mid": 2 if _NEWS in (type_id, parent) else 1,
            "type_pid": parent,
            "type_extend": json.dumps({key: _FILTERS.get(type_id, {}).get(key, "") for key in keys}),
        }
        for type_id, name, slug, parent in _TYPES
    ]
