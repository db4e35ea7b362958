"""Texts printed by the demo of each system, in both languages of the terminal.

A text may have values in braces. A label at the beginning of a line has eleven columns; a Chinese character takes two.
"""

from __future__ import annotations

from collections.abc import Mapping

from douban_pipeline.core.ui.language import said

PRINTED: Mapping[str, tuple[str, str]] = {
    "nothing": ("没有到期的", "nothing was due"),
    # douban
    "library": ("片库       {url}", "library    {url}"),
    "upstream": ("上游       {url}（内置回放，只在本机）", "upstream   {url} (bundled replay, this machine only)"),
    "taking in": ("收录片库", "taking in the library"),
    "shards": ("分片 {first}-{last}，共 {count} 个", "shards {first}-{last} of {count}"),
    "late": ("其间到期的", "what became due meanwhile"),
    "reports": ("报告", "reports"),
    "done": ("完成", "done"),
    "run": ("本次运行", "This run"),
    "due": ("到期", "due"),
    "confirmed": ("本次确认", "confirmed by this run"),
    "review": ("转人工审核", "sent to review"),
    "not found": ("未找到", "not found"),
    "synced": ("已同步（写入，或本来就一致）", "synced (written or up to date)"),
    "failed": ("失败，稍后重试", "failed, to be tried again"),
    "deferred": ("因来源故障而推迟", "deferred by a failing source"),
    "intros": ("写成的简介", "intros written"),
    "requests": ("查找候选的请求", "requests to find candidates"),
    "now": ("片库现状", "The library now"),
    "status": ("状态", "status"),
    "videos": ("影片", "videos"),
    "locked": ("锁定 ID", "locked id"),
    "with id": ("有豆瓣 ID", "with Douban id"),
    "guards": ("检查", "Guards"),
    "guard": ("检查", "guard"),
    "passed": ("通过", "passed"),
    "failures": ("未通过", "failed"),
    "written": ("写入 CMS", "Written"),
    "column": ("mac_vod 的列", "column of mac_vod"),
    "changes": ("次数", "changes"),
    "logged": ("变更日志 {count} 条", "{count} logged changes"),
    "failed run": ("失败的运行：", "failed run:"),
    "chain": (
        "到期 {due} 部，判定 {judged} 部，写入 {written} 部，简介 {intros} 篇",
        "{due} visits, {judged} judged, {written} written, {intros} intros",
    ),
    "again": ("，{count} 部稍后重试", ", {count} to be tried again"),
    # feeds
    "sources": ("来源       {url}（内置，只在本机）", "sources    {url} (bundled, this machine only)"),
    "followed": ("关注的来源", "Followed sources"),
    "source": ("来源", "source"),
    "kind": ("类型", "kind"),
    "polls": ("轮询", "polls"),
    "hits": ("有新内容", "hits"),
    "next poll": ("下次轮询", "next poll"),
    "why": ("为什么", "why"),
    "polled": (
        "在来源的 {hours} 小时里轮询 {polls} 次，{hits} 次有新内容",
        "{polls} polls in {hours} hours of the sources' time, {hits} found something",
    ),
    "feeds": (
        "轮询 {sources} 个来源共 {polls} 次，{hits} 次有新内容",
        "{polls} polls of {sources} sources, {hits} found something",
    ),
    # digest
    "articles": (
        "文章       {url}（内置 WeRSS 与模型，只在本机）",
        "articles   {url} (bundled WeRSS and model, this machine only)",
    ),
    "digest of": ("{day} 的日报", "The digest of {day}"),
    "slot": ("时段", "slot"),
    "new": ("新文章", "new"),
    "analysed": ("已分析", "analysed"),
    "findings": ("机会", "findings"),
    "best": ("最高分", "best"),
    "taken": ("两个机器人收到 {count} 条消息：{titles}", "{count} messages taken by two robots: {titles}"),
    "digest": ("{day} 的 {slots} 个时段，推送 {messages} 条消息", "{slots} slots of {day}, {messages} messages pushed"),
    # tmdb
    "no embedded": (
        "略过：没有安装附加依赖 tmdb-embedded",
        "left out: the extra tmdb-embedded is not installed",
    ),
    "question": ("提问       {question}", "question   {question}"),
    "left in store": ("PostgreSQL 里留下的", "What three questions left in PostgreSQL"),
    "table": ("表", "table"),
    "full": ("完整", "full"),
    "stubs": ("占位", "stubs"),
    "questions": (
        "提问       记录了 {logged} 个；{waiting} 个实体等待写入图谱",
        "questions  {logged} logged; {waiting} entities wait in the outbox",
    ),
    "graph": ("图谱       {line}", "graph      {line}"),
    "directors": ("《{name}》由谁导演？", "Who directed {name}?"),
    "regulars": ("谁最常出演{name}的作品？", "Who acted for {name} most often?"),
    "changed": (
        "更改       {entity}：{change}；写入图谱 {edges} 条边",
        "changed    {entity}: {change}; {edges} edge written to the graph",
    ),
    "in the graph": ("图谱中的部分有变", "changed in the graph"),
    "role": ("           主演现在饰演 {roles}", "           its lead now plays {roles}"),
    "answered": ("回答 {count} 个问题", "{count} questions answered"),
    "into graph": ("，{count} 个实体写入图谱", ", {count} entities into the graph"),
    "graph current": ("，图谱已是最新", "; the graph was up to date"),
    # comments
    "service": ("服务       {url}（只在本机）", "service    {url} (this machine only)"),
    "in redis": ("列表       在 Redis 里", "lists      lists in Redis"),
    "no redis": ("列表       没有设置 Redis：由数据库回答", "lists      no Redis is named: the database answers"),
    "by heat": ("{title}，按热度", "{title}, by heat"),
    "author": ("作者", "author"),
    "comment": ("评论", "comment"),
    "likes": ("赞", "likes"),
    "replies": ("回复", "replies"),
    "applied": (
        "{sent} 个请求，执行 {applied} 个事件；{wrong} 个计数与评论不符",
        "{sent} requests, {applied} events applied; {wrong} counters differ from the rows",
    ),
    "talk": (
        "一个评论区执行 {applied} 个事件，按热度 {threads} 个主题",
        "{applied} events of a section applied, {threads} threads by heat",
    ),
    "section": (
        "{talk}；收录 {count} 条评论，试行一条规则，从各处删除一条",
        "{talk}; {count} comments taken in, a rule tried, one deleted everywhere",
    ),
    "no redis-server": (
        "评论       没有找到 redis-server：都从数据库读取",
        "comments   no redis-server is found: everything is read from the database",
    ),
    "taken in": (
        "评论       《{title}》在 CMS 里的 {count} 条，{seconds} 秒收录并执行；"
        "按热度排好 {sections} 个评论区；检查{checks}",
        "comments   {count} of the CMS's own on 《{title}》 taken in and applied in {seconds} s, "
        "sections ordered by heat: {sections}; checks {checks}",
    ),
    "checks passed": ("通过", "passed"),
    "checks failed": ("未通过：{names}", "failed: {names}"),
    "page": (
        "页面       {count} 条评论，其中主楼 {roots} 条，{took} 毫秒打开；最前面的：",
        "page       {count} comments, {roots} of them roots, opened in {took} ms; the first:",
    ),
    "third": ("为何第三？ {why}", "why third? {why}"),
    "first": (
        "           {place}. {text}（{author}，{likes} 赞，{replies} 回复）",
        "           {place}. {text} ({author}, {likes} likes, {replies} replies)",
    ),
    "rule": (
        "规则       {expression} → {decision} {amount}，试行：{changed} 条的得分会变，{moved} 条会换位置",
        "rule       {expression} → {decision} by {amount}, tried: {changed} would get another score, "
        "{moved} would move",
    ),
    "in force": (
        "           以修订 {revision} 生效；原来的第 {gone} 名离开了前十：",
        "           in force as revision {revision}; who was number {gone} has left the first ten:",
    ),
    "nobody": ("（无）", "nobody"),
    "deleted": (
        "删除       评论 {number} 及其 {below} 条回复，原来在全部这些地方：{lists}；"
        "现在在其中 {found} 处，评论由 {before} 条变为 {after} 条",
        "deleted    comment {number} with {below} replies, which was in all of {lists}: now in {found} of them, and "
        "{before} comments became {after}",
    ),
    "taken back": (
        "           撤销后：{count} 条评论，又在 {all} 处中的 {found} 处",
        "           taken back: {count} comments, in {found} of {all} again",
    ),
    "list heat": ("按热度", "by heat"),
    "list time": ("按时间", "by time"),
    "list likes": ("按赞数", "by likes"),
    "list floor": ("按楼层", "by floor"),
    "list replies": ("它的回复", "its replies"),
    "list dialog": ("它的对话", "its dialog"),
    "list servers": ("供服务器用的接口", "the API of servers"),
}
"""Each text by its name: Chinese, English."""


def printed(name: str, /, **values: object) -> str:
    """Return a text in the language of the terminal, with ``values`` inserted.

    Raises:
        KeyError: There is no such text, or a value is missing.
    """
    return said(*PRINTED[name]).format(**values)


def in_chinese(name: str, /, **values: object) -> str:
    """Return a text in Chinese, as shown on the demo's pages."""
    return PRINTED[name][0].format(**values)
