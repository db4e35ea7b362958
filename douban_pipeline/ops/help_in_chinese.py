"""Chinese texts of ``--help``, by the English text of each command and option.

A text that is not here is shown in English; a test reports missing texts and unused entries.
"""

from collections.abc import Mapping

HELP: Mapping[str, str] = {
    # --- an installation ---
    "Keeps the metadata of a maccms10 library true to Douban. Its work runs in Dagster.": (
        "让 maccms10 片库的资料与豆瓣保持一致；工作本身在 Dagster 里进行。"
    ),
    "Print the version and exit.": "显示版本并退出。",
    "Show this message and exit.": "显示本帮助并退出。",
    "Check the settings and the databases, create or upgrade our tables, set Dagster's pool limits.": (
        "检查设置和数据库，建立或升级自有的表，设置 Dagster 的并发池上限。"
    ),
    "douban, feeds … or all; may be repeated. Default: DOUBAN_PIPELINE_SYSTEMS.": (
        "系统名（douban、feeds 等）或 all，可重复；默认取 DOUBAN_PIPELINE_SYSTEMS。"
    ),
    "Check everything the pipeline needs; exit with 1 if a check fails. Changes nothing.": (
        "检查所需的一切是否就绪；有一项不通过则以 1 退出。不做任何改动。"
    ),
    "Also check Dagster's instance.": "同时检查 Dagster 实例。",
    "Send one request to each source and show the result.": "向每个数据源各请求一次，并显示结果。",
    "Print JSON, for monitors.": "输出 JSON，供监控使用。",
    "Upgrade our tables to this release. Stop Dagster and take a backup first.": (
        "把自有的表升级到本版本。请先停止 Dagster 并做好备份。"
    ),
    "Only print the SQL; change nothing.": "只打印 SQL，不做改动。",
    "Print the least privileges that the pipeline's account needs, as SQL for the database's administrator.": (
        "以 SQL 打印数据库账号所需的最小权限，供数据库管理员执行。"
    ),
    "Name of the pipeline's database account.": "数据库账号名。",
    "Host it connects from, as the database server sees it.": "账号的来源主机（从数据库服务器看）。",
    "Back up our tables, compressed. Runs may continue; an earlier backup is replaced only by a complete one.": (
        "压缩备份自有的表。备份时运行可继续；只有完整的备份才会替换旧的。"
    ),
    "File to write, or a folder for one file per system.": "要写的文件；或一个文件夹，每个系统一个文件。",
    "With a folder: keep only this many of the newest backups.": "用文件夹时：只保留最新的几份。",
    "Restore our tables from a backup. A dry run unless --no-dry-run is given; stop Dagster first.\n\n"
    "The CMS's tables are not touched: what was written to them after the backup stays, and the restored log does not\n"
    'contain it. deploy/README.md, "Restoring", says what that means and what to do.': (
        "用备份恢复自有的表。默认只演练，加 --no-dry-run 才执行；请先停止 Dagster。\n\n"
        "CMS 的表不会改动：备份之后写入的内容仍在，恢复后的日志里没有这些写入。"
        "deploy/README.zh-CN.md 的恢复一节说明其含义和该做什么。"
    ),
    "A file written by `backup`.": "`backup` 写出的文件。",
    "Delete the current contents of our tables.": "删除表中现有的内容。",
    "Before that, save the current contents to the folder backups in HOME.": (
        "删除之前，把现有内容保存到 HOME 的 backups 文件夹。"
    ),
    "Show every setting: its variable, its value (never a secret) and what it means.": (
        "列出每个设置：变量名、当前值（从不显示密码）和含义。"
    ),
    # --- lists ---
    "Show a list from the database: what waits for people, what is locked, what was written.": (
        "显示数据库中的列表：待人工处理的、已锁定的、已写入的。"
    ),
    "review, missing, duplicates, locked, intros, tasks, decisions or log.": (
        "review 待审核、missing 缺 ID、duplicates 重复、locked 已锁定、intros 简介、tasks、decisions 决定、log 日志。"
    ),
    "Id of a category; may be repeated.": "分类 ID，可重复。",
    "Only from this time on, in the site's time zone: 2026-11-20, or 7d for the last week.": (
        "从此时起（站点时区）：如 2026-11-20，或 7d 表示一周内。"
    ),
    "Only before this time.": "到此时为止。",
    "Source of an id, model, operator, reviewer or status; may be repeated.": (
        "来源：ID 来源、模型、操作者、审核员或状态，可重复。"
    ),
    "Text in the title or a reason, or the id of a video or a subject.": "片名或原因中的文字，或影片、条目的 ID。",
    "Column to sort by, such as updated, hits or id; largest first.": "排序依据，如 updated、hits、id；大的在前。",
    "Sort smallest first.": "小的在前。",
    "Page number.": "第几页。",
    "Rows per page.": "每页行数。",
    "Write all rows to this CSV file; - is standard output.": "把全部行写入此 CSV 文件；- 为标准输出。",
    # --- the demo, workers and services ---
    "Run each system through Dagster on bundled samples and embedded servers, and print the results.": (
        "用自带的样本和内置的服务器，经 Dagster 运行每个系统，并打印结果。"
    ),
    "Run Dagster, the service and the comment worker on the demo library, until Ctrl-C.": (
        "在演示片库上运行 Dagster、服务和评论工作进程，直到 Ctrl-C。"
    ),
    "Systems, separated by commas: douban, feeds, digest, tmdb, comments. Default: all.": (
        "系统，用逗号分隔：douban、feeds、digest、tmdb、comments；默认全部。"
    ),
    "Number of server processes; SERVE_PROCESSES by default.": "服务进程数；默认取 SERVE_PROCESSES。",
    "Port of the service, on 127.0.0.1.": "服务的端口（127.0.0.1）。",
    "Port of Dagster's UI, on 127.0.0.1.": "Dagster 界面的端口（127.0.0.1）。",
    "Process the events of comment sections until stopped. Several workers share the work.": (
        "处理评论区的事件，直到停止；可同时运行多个，分担工作。"
    ),
    "Process the waiting events, then exit.": "处理完当前等待的事件就退出。",
    "Serve the pages over HTTP until stopped. Addresses other than loopback need SERVE_TOKEN.": (
        "以 HTTP 提供网页，直到停止。非本机地址须设置 SERVE_TOKEN。"
    ),
    "Address to listen on; SERVE_HOST by default.": "监听地址；默认取 SERVE_HOST。",
    "Port; SERVE_PORT by default.": "端口；默认取 SERVE_PORT。",
    # --- measuring ---
    "Measure the matcher on labelled records and write a report: wrong links, coverage, reviews, requests.": (
        "用有标注的记录衡量匹配：错误关联、覆盖率、审核量、请求数，并写出报告。"
    ),
    "Subjects, one JSON object per line.": "条目，每行一个 JSON。",
    "Labelled rows, one JSON object per line; more files may follow.": "有标注的记录，每行一个 JSON；可接多个文件。",
    "More files of labelled rows.": "更多有标注的文件。",
    "plan, calibrated or both; may be repeated. Default: the setting's.": (
        "plan、calibrated 或 both，可重复；默认取设置。"
    ),
    "Folder of the reports. Default: evaluation, in the folder of the setting home.": (
        "报告文件夹；默认为 HOME 下的 evaluation。"
    ),
    "An earlier report's folder, or its predictions.jsonl, to compare with.": (
        "要比较的旧报告文件夹，或其中的 predictions.jsonl。"
    ),
    "Take only the first rows of each gold file.": "每个标注文件只取前若干行。",
    "Judge the headline rows again with their true subject removed from the index.": (
        "从索引中移除正确条目，再判定一次主要样本。"
    ),
    "Exit with 1 if there are more wrong links than this, over all rows.": "错误关联总数超过此值时以 1 退出。",
    "Exit with 1 if the linked share of the headline sources is below this.": "主要样本的关联比例低于此值时以 1 退出。",
    "Exit with 1 if more rows than this are linked with their true subject removed.": (
        "移除正确条目后，被关联的样本多于此值时以 1 退出。"
    ),
    "suggestions: titles and years; six: the same, six a page; web: bare titles.": (
        "suggestions：片名和年份；six：同上，每页六条；web：只有片名。"
    ),
    "An index of known subjects, asked before the search, as production does.": (
        "已知条目的索引，与正式环境一样先查它再搜索。"
    ),
    "Print the curve, what rows that were not linked lack, and every wrong link.": (
        "打印曲线、未关联的行缺少哪些证据，以及每条错误关联。"
    ),
    "Judge one row only and print the evidence of its verdict.": "只判定一行，并打印判定所依据的证据。",
    "Print the evidence as JSON and nothing else.": "以 JSON 打印证据，不打印其他内容。",
    "Judge again with another source's facts of the same work added, as TMDB's are.": (
        "像加上 TMDB 的资料那样，加上另一来源对同一作品的资料后再判一遍。"
    ),
    "Serve the bundled replay upstream: douban.php, three searches and OpenRouter, from the sample.": (
        "提供自带的模拟上游：douban.php、三种搜索和 OpenRouter，内容来自样本。"
    ),
    "Port on 127.0.0.1.": "127.0.0.1 上的端口。",
    # --- index ---
    "The local index of subjects, searched without a request: load it, search it.": (
        "本地条目索引，搜索时不发请求：装入、查找。"
    ),
    "Build the index from these files, replacing what was loaded before. Searches use it first.": (
        "用这些文件建立索引，替换之前装入的；搜索先查它。"
    ),
    "JSON lines or CSV with id, title, other names and year; may be .gz or .xz.": (
        "JSON 行或 CSV：ID、片名、别名、年份；可为 .gz、.xz。"
    ),
    "Read and count; write nothing.": "只读取和计数，不写入。",
    "Index the subjects in the archive, as the job index_archive does each night.": (
        "为存档中的条目建立索引，与每晚的作业 index_archive 相同。"
    ),
    "Show what the indexes hold, and when they were made.": "显示各索引的内容和建立时间。",
    "Show the known subjects with a title like this one.": "显示片名相近的已知条目。",
    "A title, in any spelling.": "片名，写法不限。",
    "Show subjects of this year first.": "该年份的条目排在前面。",
    # --- feeds ---
    "Followed sources: what is polled, when, and why.": "关注的来源：抓取什么、何时、为什么。",
    "Show every source with its cadence, last and next poll, and state.": "列出每个来源的节奏、上次和下次抓取、状态。",
    "Only what is due now.": "只列已到期的。",
    "Print JSON.": "输出 JSON。",
    "Explain when a source is polled and why: statistics, cadence, expected publications, last polls.": (
        "说明某个来源何时抓取、为什么：统计、节奏、预计的发布、最近的抓取。"
    ),
    "Id, address or title.": "ID、地址或标题。",
    "Follow a source, or change the one that has this address.": "关注一个来源，或修改此地址的来源。",
    "Address; for a public account, its id in WeRSS.": "地址；公众号则为它在 WeRSS 的 ID。",
    "rss, werss, maccms or json.": "rss、werss、maccms 或 json。",
    "Title to show; its own by default.": "名称；默认用它自己的标题。",
    "P0 (15 min) to P6 (24 h), used until its own cadence is learned.": (
        "P0（15 分钟）到 P6（24 小时），在学到它自己的节奏之前使用。"
    ),
    "Fields of a JSON list: path=data.list, id=…, title=…, link=…, time=….": (
        "JSON 列表的字段：path=data.list、id=…、title=…、link=…、time=…。"
    ),
    "Show what would happen; change nothing.": "只显示会发生什么，不做改动。",
    "Follow the feeds of an OPML file; known ones stay as they are.": "关注 OPML 文件里的来源；已有的不变。",
    "OPML, as feed readers export it.": "阅读器导出的 OPML。",
    "Write the followed feeds as OPML.": "把关注的来源写成 OPML。",
    "File to write; printed by default.": "写到哪里；默认打印。",
    "Poll the sources that are due, or those named, without Dagster.": "不经 Dagster，立即抓取到期的或指定的来源。",
    "Ids, addresses or titles; default: all due.": "ID、地址或标题；默认为全部到期的。",
    # --- digest ---
    "The daily digest: its slots, its articles, and what is pushed to whom.": "每日摘要：时段、文章和推送。",
    "Run a slot now, without Dagster; one that succeeded is not run again. Exit with 1 if it failed.": (
        "不经 Dagster，立即运行一个时段；已成功的不再运行。失败则以 1 退出。"
    ),
    "Such as '2026-11-20|07:00'; default: the last one due.": "如 '2026-11-20|07:00'；默认为最近到点的。",
    "Show the slots of the last days: articles read and analysed, findings, and errors.": (
        "显示最近几天的时段：采集和分析的文章、发现的机会和错误。"
    ),
    "Number of days.": "天数。",
    "Show the state of articles: text, analysis, score, or why there is none.": (
        "显示文章的处理情况：正文、分析、得分，或没有的原因。"
    ),
    "Words of an article's title.": "文章标题中的词。",
    "Write subject.md and rubric.md if they are missing, and show the current version.": (
        "缺少 subject.md 和 rubric.md 时写出，并说明当前使用的版本。"
    ),
    "Log in to WeRSS again, without the stored token and refusals: for use after correcting the password.": (
        "清除保存的令牌和登录失败记录，重新登录 WeRSS：改正密码之后使用。"
    ),
    "Send the due messages of the outbox without Dagster, or a test message; exit with 1 if one is not accepted.": (
        "不经 Dagster，立即发送发件箱里到期的，或一条测试消息；有未被接收的则以 1 退出。"
    ),
    "Send a test message to this channel; all for all.": "向此渠道发测试消息；all 为全部。",
    "Show the messages of the outbox: which were delivered, which wait, and why.": (
        "显示发件箱：已送达的、等待的及原因。"
    ),
    "Number of messages, newest first.": "显示多少条，最新的在前。",
    # --- tmdb ---
    "TMDB's answers in PostgreSQL, and the graph of films and people.": "PostgreSQL 中的 TMDB 资料，及影片与人物的图。",
    "Create or upgrade the schema tmdb, and the constraints of the graph database.": (
        "建立或升级模式 tmdb，以及图数据库的约束。"
    ),
    "Also create the graph's constraints and indexes.": "同时建立图数据库的约束和索引。",
    "Check what the system needs; exit with 1 if a check fails. Changes nothing.": (
        "检查本系统所需；有一项不通过则以 1 退出。不做任何改动。"
    ),
    "Also check the graph database.": "同时检查图数据库。",
    "Load recorded answers as if TMDB had just sent them, and show what changed; exit with 1 if one is unreadable.": (
        "装入录制的应答，如同刚从 TMDB 取得，并逐个显示变化；有无法读取的则以 1 退出。"
    ),
    "Recorded answers, one JSON object per line; may be .gz or .xz.": "录制的应答，每行一个 JSON；可为 gz、xz。",
    "Load TMDB's daily list of ids: a stub is created for each unknown entity.": (
        "装入 TMDB 每日的 ID 列表：为未知的实体建立占位行。"
    ),
    "Kind of entity in the list.": "列表中实体的种类。",
    "TMDB's daily file: one JSON object per line; may be .gz or .xz.": (
        "TMDB 每日提供的文件：每行一个 JSON；可为 gz、xz。"
    ),
    "Instead of a file: download the list of this day.": "不用文件，而下载这一天的列表。",
    "Fetch entities with their credits from TMDB, store them, and show what changed; exit with 1 if one fails.": (
        "从 TMDB 取得实体及演职员，存储并显示变化；有取不到的则以 1 退出。"
    ),
    "As in TMDB's paths: movie/603 tv/1396.": "如 TMDB 路径：movie/603 tv/1396。",
    "Language of the answers; default: the base language.": "应答的语言；默认为基本语言。",
    "Answer a question about films, series and people from TMDB; exit with 1 if TMDB gives no answer.": (
        "用 TMDB 回答关于影片、剧集和人物的问题；没有答案则以 1 退出。"
    ),
    "A question in plain words: 《喜宴》的导演是谁？": "一句话的问题：《喜宴》的导演是谁？",
    "Kind of title where the question does not say: movie or tv.": "问题没有说明时的种类：movie 或 tv。",
    "User who asks; without it nothing is recorded.": "提问的用户；不给则不记录。",
    "Session of the user; without it nothing is recorded.": "所在的会话；不给则不记录。",
    "Record nothing.": "不记录。",
    "Write the records spooled on this machine to PostgreSQL; exit with 1 if some remain.": (
        "把本机暂存的写入 PostgreSQL；有剩余则以 1 退出。"
    ),
    "Only show how many wait; write nothing.": "只显示有多少在等待，不写入。",
    "Serve recorded answers as TMDB's API does, on loopback, until Ctrl-C.": (
        "在本机以 TMDB API 的形式提供录制的应答，直到 Ctrl-C。"
    ),
    "Recorded answers; default: the bundled ones.": "录制的应答；默认用自带的。",
    "Port on loopback.": "本机端口。",
    "Write changes to the graph until none is due; exit with 1 if one could not be written.": (
        "把变化写入图，直到没有到期的；有写不进去的则以 1 退出。"
    ),
    "Stop after this many seconds.": "运行这么多秒后停止。",
    "Empty the graph and rebuild it from the stored answers. A dry run unless --no-dry-run is given.": (
        "清空图并用存储的资料重建。默认只演练，加 --no-dry-run 才执行。"
    ),
    "Only show how much would be written; change nothing.": "只显示数量，不做改动。",
    "Queue the changes again that were set aside because they could not be written to the graph.": (
        "把写不进图而搁置的重新排队。"
    ),
    "Delete expired data: questions, finished rows of the outbox, answers older than TMDB's terms allow.": (
        "删除到期的数据：提问、已完成的出站行、超过 TMDB 条款期限的资料。"
    ),
    "Only show what would be deleted; change nothing.": "只显示会删除什么，不做改动。",
    "Delete all questions of a user or a conversation, and all other records that name them.": (
        "删除某个用户或某次对话的全部提问，以及其他提到它们的记录。"
    ),
    "The user.": "用户。",
    "Instead of a user: the conversation.": "不按用户，而按对话。",
    "Query the graph: a title's directors, who acts together, a director's regulars, how two people are connected.": (
        "查询图：谁导演、谁常合作、导演的常用演员、两人如何关联。"
    ),
    "directors, co-actors, regulars or path.": "directors 导演、co-actors 合作演员、regulars 常用演员、path 路径。",
    "Name of a person or a title; two names for path.": "人名或片名；path 要两个。",
    "Maximum number of rows.": "最多行数。",
}
