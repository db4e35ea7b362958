"""The page of troubleshooting: what `check` and the alerts say, why, and what to do; ``make reference`` writes it.

What people see and what to do come from the code. Why stands here, by what is checked: a test finds what has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from douban_pipeline.core.database_errors import meanings
from douban_pipeline.core.environment import SYSTEMS
from douban_pipeline.core.language import Language, read_in, translated
from douban_pipeline.core.run_failures import known_reasons
from douban_pipeline_tests.harness.findings import alert_titles, findings

PAGES: Mapping[Language, str] = {"en": "docs/troubleshooting.md", "zh": "docs/troubleshooting.zh-CN.md"}
_SOURCE = "…"
_SETTINGS = (
    "{variable} = {value!r} is not allowed",
    "{given} is not a setting",
    "{variable} is {now} now{how}",
    "{variable} is a constant now ({value}): remove it",
)
"""What is said of variables."""
_LIBRARIES = (
    "{library} is not installed; the extra {extra} brings it: {command}",
    "or take {name} out of DOUBAN_PIPELINE_SYSTEMS",
)
"""What is said of a library that is missing, and what else to do."""
WHY: Mapping[str, tuple[str, str]] = {
    "settings": (
        "Every variable with the prefix is read at start; a misspelt one would change nothing, so it is refused.",
        "带前缀的变量启动时全部读取；写错名字的不会起作用，所以直接拒绝。",
    ),
    "database": (
        "The address, the account or the server is not what the setting says.",
        "地址、账号或服务器与设置所写的不符。",
    ),
    "tables": (
        "The tables are made and changed by commands alone, never by a run.",
        "表只由命令建立和修改，运行从不自己动表。",
    ),
    "grants": (
        "The account may do just what was granted; a new table or a new policy needs a new grant.",
        "账号只有授予过的权限；新的表、新的字段策略都要再授权。",
    ),
    "clock": (
        "Leases and pace are compared between machines; clocks apart make work late or doubled.",
        "租约和节奏要在机器之间比较；时钟不齐，工作会迟到或重复。",
    ),
    "secrets": (
        "The file holds the passwords of databases and the keys of services.",
        "文件里有数据库密码和各服务的密钥。",
    ),
    "home": (
        "Reports, backups and the inbox are in that folder.",
        "报告、备份和收件夹都在这个文件夹里。",
    ),
    "profile": (
        "Which profile scores matches was never chosen, and the default was another one once.",
        "评分方案从未选定，而默认值曾经是另一个。",
    ),
    "tmdb_facts": (
        "TMDB allows its data to be kept for six months.",
        "TMDB 只允许把它的数据保存六个月。",
    ),
    _SOURCE: (
        "A source is paused after failures, or its address does not answer from this machine.",
        "来源接连失败后会暂停；或者从本机访问不到它的地址。",
    ),
    "instance": (
        "Dagster reads its instance from `DAGSTER_HOME`, and every process needs the variables that it names.",
        "Dagster 从 `DAGSTER_HOME` 读取实例；其中用到的变量，每个进程都要有。",
    ),
    "workspace": (
        "The webserver and the daemon ask the code locations that this file names.",
        "webserver 和 daemon 只访问这个文件里的代码位置。",
    ),
    "daemon": (
        "Sensors, schedules and the queue of runs live in the daemon.",
        "传感器、计划和运行队列都在这个守护进程里。",
    ),
    "pools": (
        "The limits of pools are kept in Dagster's database, where `setup` writes them.",
        "并发池的上限存在 Dagster 的数据库里，由 `setup` 写入。",
    ),
    "werss": (
        "Public accounts are read through WeRSS, which wants a login.",
        "公众号通过 WeRSS 读取，而它要求登录。",
    ),
    "gate": (
        "A wrong password or repeated failures close the gate, so that the account is not locked out.",
        "密码错误或接连失败会熔断，免得账号被锁。",
    ),
    "model": ("Articles are analysed by a language model, which wants a key.", "文章由语言模型分析，它要求密钥。"),
    "channels": ("A report is pushed to the channels that are set.", "报告只推送到已设置的渠道。"),
    "alerts": (
        "Alerts go to operators alone, and no channel of theirs is set.",
        "告警只发给运维人员，而没有设置他们的渠道。",
    ),
    "sources": ("The digest reads WeRSS or the followed sources.", "每日摘要读取 WeRSS 或关注来源。"),
    "worker": (
        "What visitors do is applied by a process of its own; without it comments wait.",
        "访客的操作由单独的进程应用；没有它，评论就等着。",
    ),
    "visitors": (
        "Visitors are known by the site's login or by a token; none of both is set.",
        "访客靠站点登录或令牌识别，而两者都没有设置。",
    ),
    "addresses": (
        "Behind a proxy that nobody named all visitors have its address, and limits count them as one.",
        "未写明的反向代理之后，所有访客都是它的地址，限制就把他们算作一人。",
    ),
    "age": ("TMDB allows its data to be kept for six months.", "TMDB 只允许把它的数据保存六个月。"),
    "outbox": (
        "What changed in the store reaches the graph through the outbox; something stopped it.",
        "数据的改动经发件箱到图；有东西挡住了它。",
    ),
    "graph": ("The graph is a server of its own.", "图是单独的服务器。"),
    "spool": (
        "Questions that PostgreSQL did not take are kept in a file until it does.",
        "PostgreSQL 没有收下的提问先存在文件里。",
    ),
    "libraries": (
        "A system needs libraries that an extra installs; a new release may need more.",
        "系统要用附加依赖里的库；新版本可能要用更多。",
    ),
    "api": ("Without a key TMDB answers nothing.", "没有密钥，TMDB 什么也不回答。"),
}
"""Why, in both languages, by the name of the check."""
ALERTS: Mapping[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "运行失败：…": (
        ("A run ended with an error; its work comes back by itself.", "运行出错结束；它的工作会自动再来。"),
        (
            "Read 可能的原因 and 怎么办 in it: [below](#runs-that-failed)",
            "看其中的“可能的原因”和“怎么办”：[见下](#失败的运行)",
        ),
    ),
    "运行失败（…）：…": (
        (
            "Something that all runs need failed, such as the disk or a database; its work comes back by itself.",
            "所有运行都要用的东西（磁盘、数据库）出了问题；工作会自动再来。",
        ),
        ("Mend it as 怎么办 says", "按其中的“怎么办”处理"),
    ),
    "… 部影片的豆瓣 ID 在 CMS 中一并被清空（不是本程序），是有意的吗？": (
        (
            "Many ids were emptied in the CMS at once; these videos wait for the answer, and nothing else does.",
            "CMS 中一次清空了许多 ID；这些影片等待回答，其余照常。",
        ),
        ("Answer once with `settle_cleared_ids`", "用作业 `settle_cleared_ids` 回答一次"),
    ),
    "… 部影片的 … 在 CMS 中被改（不是本程序），是有意的吗？": (
        (
            "A batch edit or another program changed what had been written. Nothing waits for the answer.",
            "批量编辑或其他程序改动了写入的值。没有什么等着这个回答。",
        ),
        ("Answer once with `settle_cms_edits`", "用作业 `settle_cms_edits` 回答一次"),
    ),
    "没有做完，请重新启动：…": (
        (
            "A run that a person launched ended with an error, or never began; nobody else launches it again.",
            "人工启动的运行出错结束，或没能开始；不会有人替您再启动。",
        ),
        ("Open the link in it, which holds the config, and launch it again", "打开其中的链接（已填好配置），重新启动"),
    ),
    "守卫未通过：… / …": (
        (
            "A check found something that must not be written, so everything after it stopped.",
            "检查发现了不该写入的东西，后面的步骤都停了。",
        ),
        ("Open the check in Dagster: it lists the videos", "在 Dagster 中打开该检查，里面列出了影片"),
    ),
    "搜索来源的空结果不可信：…": (
        (
            "The source finds nothing even of known titles: it counts as ill, and no video is declared missing.",
            "连已知的片名也查不到：视为来源有病，不会据此判定影片不存在。",
        ),
        ("Search by hand at the source; runs resume by themselves", "到该来源手工搜一次；恢复后自动继续"),
    ),
    "数据源已熔断：…": (
        ("The source failed or refused several times in a row.", "来源接连失败或拒绝。"),
        (
            "Wait, or mend the source; `set_gate` closes the breaker by hand",
            "等它恢复，或修好来源；作业 `set_gate` 可手动关闭熔断",
        ),
    ),
    "… 部影片的 AI 简介连续失败 … 次以上": (
        ("The same video failed again and again (for intros, or in syncing).", "同一部影片（的简介或同步）一再失败。"),
        ("Open `review_queue`, or correct the video's data in the CMS", "查看 `review_queue`，或在 CMS 里改正影片资料"),
    ),
    "AI 简介今日预算已用完": (
        ("The day's budget for the model is spent.", "今天给模型的预算用完了。"),
        (
            "Wait for tomorrow, or raise `DOUBAN_PIPELINE_LLM_BUDGET_USD_PER_DAY`",
            "明天自动继续，或调高 `DOUBAN_PIPELINE_LLM_BUDGET_USD_PER_DAY`",
        ),
    ),
    "… 个来源需要登录": (
        ("The sources answered 401 three times.", "这些来源三次应答 401。"),
        (
            "Write credentials and name them ([feeds.md](feeds.md))",
            "写好凭据并指明名称（[feeds.md](feeds.md)）",
        ),
    ),
    "… 台主机拒绝我们抓取": (
        (
            "The hosts answer 429 or 403: they were asked too often, or ban this address.",
            "主机应答 429 或 403：问得太勤，或封了本机地址。",
        ),
        ("Wait as long as the alert says; then poll less often", "按提醒所说的时间等待；之后降低频率"),
    ),
    "有来源没有按时抓取": (
        ("No run polls: the sensor is off, or runs fail.", "没有运行在抓取：传感器关了，或运行失败。"),
        ("Look at `due_feeds_sensor` and the runs of `poll_feeds`", "查看 `due_feeds_sensor` 和 `poll_feeds` 的运行"),
    ),
    "多数来源没有应答": (
        (
            "So many at once: it is this machine's network, DNS or proxy.",
            "这么多同时没有应答：是本机的网络、DNS 或代理。",
        ),
        ("Try one of the addresses on this machine", "在本机打开其中一个地址试试"),
    ),
    "… 个来源有没读到的更新": (
        (
            "A source published more between two polls than its list shows.",
            "两次抓取之间发布的，比来源列表能显示的多。",
        ),
        ("Shorten its longest interval, or follow its hub", "缩短它的最长间隔，或使用它的 hub"),
    ),
}
"""Why, and what to do, by the title of an alert."""
_WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "title": "# Troubleshooting",
        "links": "[中文](troubleshooting.zh-CN.md) · [Operating](operate.md) · [For the owner of a site](owner.md)",
        "intro": (
            "`douban-pipeline check` says what is wrong, a line each, and what to do. Here is what it can say "
            "(`…` is what it fills in), with why, but for lines that are worded at the time; then the alerts, which "
            "go to "
            "`DOUBAN_PIPELINE_ALERT_WEBHOOK_URL`.\n"
            "Written from the code by `make reference`."
        ),
        "check": "## What `check` says",
        "alerts": "## What alerts say",
        "alerts_intro": "Alerts are Chinese, as their readers are.",
        "runs": "## Runs that failed",
        "runs_intro": "The alert of a failed run, and the page of the failure, say the likely reason by its error.",
        "source": "*its name*",
        "see": "| | you see | why | what to do |",
        "told": "| you see | why | what to do |",
        "reason": "| likely reason | what to do |",
    },
    "zh": {
        "title": "# 故障排查",
        "links": "[English](troubleshooting.md) · [运维](operate.md) · [站长须知](owner.zh-CN.md)",
        "intro": (
            "`douban-pipeline check` 逐行说明哪里不对、该怎么办。这里列出它可能说的话（`…` 处由它填入）和原因，"
            "只有当时才知道全文的除外；"
            "然后是发往 `DOUBAN_PIPELINE_ALERT_WEBHOOK_URL` 的提醒。\n由 `make reference` 从代码写出。"
        ),
        "check": "## `check` 说什么",
        "alerts": "## 提醒说什么",
        "alerts_intro": "提醒是中文的。",
        "runs": "## 失败的运行",
        "runs_intro": "失败的运行，其提醒和页面按错误说出可能的原因。",
        "source": "*来源名*",
        "see": "| | 看到 | 为什么 | 怎么办 |",
        "told": "| 看到 | 为什么 | 怎么办 |",
        "reason": "| 可能的原因 | 怎么办 |",
    },
}


def page(language: Language) -> str:
    """Return the page in a language."""
    words = _WORDS[language]
    sections = [
        *(words[each] for each in ("title", "links", "intro", "check")),
        _table(words["see"], _checks(language)),
        words["alerts"],
        words["alerts_intro"],
        _table(words["told"], _alerts(language)),
        words["runs"],
        words["runs_intro"],
        _table(
            words["reason"],
            ((translated(each.reason, language), translated(each.remedy, language)) for each in known_reasons()),
        ),
    ]
    return "\n\n".join(sections) + "\n"


def _checks(language: Language) -> Iterator[tuple[str, ...]]:
    number = 0 if language == "en" else 1
    with read_in(language):
        of_databases = [(f"…: {each.problem()} (…)", each.remedy().format(setting="…")) for each in meanings()]
    correct = translated("correct the variable, in the environment or in .env", language)
    of_settings = [(_template(text, language), correct) for text in _SETTINGS]
    library, otherwise = (_template(text, language) for text in _LIBRARIES)
    known = [("libraries", library, otherwise)]
    known += [("settings", *each) for each in of_settings] + [("database", *each) for each in of_databases]
    for name, message, remedy in known:
        yield f"`{name}`", message, WHY[name][number], remedy
    for finding in findings(language):
        system = "" if finding.system == SYSTEMS[0] else finding.system  # the base's checks have no prefix
        shown = "" if finding.name == _SOURCE else f"{system}.{finding.name}".strip(".")
        yield (
            f"`{shown}`" if shown else _WORDS[language]["source"],
            finding.message,
            WHY[finding.name][number],
            finding.remedy,
        )


def _template(text: str, language: Language) -> str:
    return re.sub(r"\{[^}]*\}", "…", translated(text, language))


def _alerts(language: Language) -> Iterator[tuple[str, ...]]:
    number = 0 if language == "en" else 1
    for title in alert_titles():
        why, remedy = ALERTS[title]
        yield title, why[number], remedy[number]


def _table(head: str, rows: Iterator[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join([head, "|--" * (head.count("|") - 1) + "|", *lines])
