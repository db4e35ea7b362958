"""What ``--help`` says in Chinese, by the English text that stands with each command and option.

A text that is not here is shown in English; a test names those, and entries that belong to nothing any more.
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
    "Check that everything the pipeline needs is there; exit with 1 if something fails. It changes nothing.": (
        "检查所需的一切是否就绪；有一项不通过则以 1 退出。不改动任何东西。"
    ),
    "Look at Dagster's instance too.": "同时检查 Dagster 实例。",
    "Ask each source once, and show what came.": "向每个数据源各请求一次，并显示结果。",
    "Print JSON, for monitors.": "输出 JSON，供监控使用。",
    "Bring our tables up to this release. Stop Dagster before, and take a backup.": (
        "把自有的表升级到本版本。请先停止 Dagster 并做好备份。"
    ),
    "Print the SQL instead; change nothing.": "只打印 SQL，不做改动。",
    "Print what the pipeline's account must be allowed, and no more, as SQL for the database's owner.": (
        "以 SQL 打印数据库账号所需的最小权限，供数据库管理员执行。"
    ),
    "Name of the pipeline's account.": "数据库账号名。",
    "Host that it comes from, as the server sees it.": "账号的来源主机（从数据库服务器看）。",
    "Save our tables, compressed. Runs may go on while it works; an earlier backup is replaced only by a whole one.": (
        "压缩备份自有的表。备份时运行可继续；只有完整的备份才会替换旧的。"
    ),
    "File to write, or a folder that gets one a system.": "要写的文件；或一个文件夹，每个系统一个文件。",
    "In a folder: keep only the newest of these backups.": "用文件夹时：只保留最新的几份。",
    "Put a backup in the place of its tables. A dry run unless --no-dry-run is given; stop Dagster before.\n\n"
    "The CMS's tables are not touched: what was written to them after the backup stays, and the restored log does not\n"
    'know it. deploy/README.md, "Restoring", says what that means and what to do.': (
        "用备份替换相应的表。默认只演练，加 --no-dry-run 才执行；请先停止 Dagster。\n\n"
        "CMS 的表不会改动：备份之后写入的内容仍在，恢复后的日志不知道这些写入。"
        "deploy/README.zh-CN.md 的恢复一节说明其含义和该做什么。"
    ),
    "What `backup` wrote.": "`backup` 写出的文件。",
    "Tell what would happen, and change nothing.": "只说明会发生什么，不做改动。",
    "Drop what our tables hold now.": "丢弃表中现有的内容。",
    "Save what our tables hold now, into the folder backups of HOME, before it is dropped.": (
        "丢弃之前，把现有内容保存到 HOME 的 backups 文件夹。"
    ),
    "Show every setting: its variable, its value (never a secret) and what it means.": (
        "列出每个设置：变量名、当前值（从不显示密码）和含义。"
    ),
    # --- lists ---
    "Show a list as the database has it now: what waits for people, what is locked, what was written.": (
        "显示数据库中此刻的列表：待人工处理的、已锁定的、已写入的。"
    ),
    "review, missing, duplicates, locked, intros, tasks, decisions or log.": (
        "review 待核查、missing 缺 ID、duplicates 重复、locked 已锁定、intros 简介、tasks、decisions 决定、log 日志。"
    ),
    "Id of a category; may be repeated.": "分类 ID，可重复。",
    "From then on, in the site's zone: 2026-11-20, or 7d for a week.": (
        "从此时起（站点时区）：如 2026-11-20，或 7d 表示一周内。"
    ),
    "Before then.": "到此时为止。",
    "Whose an id is, a model, an operator, a reviewer or a status; may be repeated.": (
        "来源：ID 来源、模型、操作者、审核员或状态，可重复。"
    ),
    "In the title or a reason, or the id of a video or a subject.": "片名或原因中的文字，或影片、条目的 ID。",
    "What it is ordered by, e.g. updated, hits, id; the largest first.": "排序依据，如 updated、hits、id；大的在前。",
    "The smallest first.": "小的在前。",
    "Which page.": "第几页。",
    "Rows of a page.": "每页行数。",
    "Write all rows to this CSV file; - is the standard output.": "把全部行写入此 CSV 文件；- 为标准输出。",
    # --- the demo, workers and services ---
    "Run each system over bundled samples, through Dagster, on parts that bring themselves; print what came of it.": (
        "用自带的样本和部件经 Dagster 把每个系统跑一遍，并打印结果。"
    ),
    "Run Dagster, the service and the comment worker on the demo library, until Ctrl-C.": (
        "在演示片库上运行 Dagster、服务和评论工作进程，直到 Ctrl-C。"
    ),
    "Systems, separated by commas: douban, feeds, digest, tmdb, comments. Default: all.": (
        "系统，用逗号分隔：douban、feeds、digest、tmdb、comments；默认全部。"
    ),
    "How many answer on it; SERVE_PROCESSES by default.": "由几个进程应答；默认取 SERVE_PROCESSES。",
    "Port of the service, on 127.0.0.1.": "服务的端口（127.0.0.1）。",
    "Port of Dagster's UI, on 127.0.0.1.": "Dagster 界面的端口（127.0.0.1）。",
    "Apply what happens in comment sections, until it is stopped. Any number of workers share the work.": (
        "处理评论区的事件，直到被停止；可同时运行多个，分担工作。"
    ),
    "Apply what waits now, and end.": "处理完目前等待的就结束。",
    "Offer the pages over HTTP until it is stopped. Any address but loopback needs SERVE_TOKEN.": (
        "以 HTTP 提供网页，直到被停止。非本机地址须设置 SERVE_TOKEN。"
    ),
    "Address to listen on; SERVE_HOST by default.": "监听地址；默认取 SERVE_HOST。",
    "Port; SERVE_PORT by default.": "端口；默认取 SERVE_PORT。",
    # --- measuring ---
    "Measure the matcher on labelled records: wrong links, coverage, reviews, requests; write a report of it.": (
        "用有标注的记录衡量匹配：错误关联、覆盖率、审核量、请求数，并写出报告。"
    ),
    "Subjects, one JSON object a line.": "条目，每行一个 JSON。",
    "Labelled rows, one JSON object a line; several may follow.": "有标注的记录，每行一个 JSON；可接多个文件。",
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
    "Judge headline rows once more with their true subject taken out of the index.": (
        "把正确条目从索引中拿掉，再判定一次主要样本。"
    ),
    "Exit with 1 if there are more wrong links, over all rows.": "错误关联总数超过此值时以 1 退出。",
    "Exit with 1 if a smaller share of the headline sources is linked.": "主要样本的关联比例低于此值时以 1 退出。",
    "Exit with 1 if there are more links of rows whose truth is taken out.": (
        "正确条目被拿掉的样本中，关联数超过此值时以 1 退出。"
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
    "Serve the bundled replay upstream: douban.php, three searches and OpenRouter, from the sample.": (
        "提供自带的模拟上游：douban.php、三种搜索和 OpenRouter，内容来自样本。"
    ),
    "Port on 127.0.0.1.": "127.0.0.1 上的端口。",
    # --- index ---
    "Subjects that are found without a request: load them, look them up.": "不发请求也能找到的条目：装入、查找。",
    "Make the index of these files, in the place of what was loaded before. Searching begins with it.": (
        "用这些文件建立索引，替换之前装入的；搜索先查它。"
    ),
    "JSON lines or CSV: id, title, other names, year; perhaps .gz, .xz.": (
        "JSON 行或 CSV：ID、片名、别名、年份；可为 .gz、.xz。"
    ),
    "Read and count; write nothing.": "只读取和计数，不写入。",
    "Index the subjects that the archive describes, as the job index_archive does each night.": (
        "为存档中的条目建立索引，与每晚的作业 index_archive 相同。"
    ),
    "Show what the indexes hold, and when they were made.": "显示各索引的内容和建立时间。",
    "Show which known subjects bear a title like this one.": "显示片名相近的已知条目。",
    "A title, in any writing.": "片名，写法不限。",
    "Moves subjects of that year up.": "该年份的条目排在前面。",
    # --- feeds ---
    "Followed sources: what is polled, when, and why.": "关注的来源：抓取什么、何时、为什么。",
    "Show every source with its cadence, last and next look, and state.": "列出每个来源的节奏、上次和下次抓取、状态。",
    "Only what is due now.": "只列已到期的。",
    "Print JSON.": "输出 JSON。",
    "Say why a source is asked when it is: statistics, cadence, expected publications, last polls.": (
        "说明某个来源为何此时抓取：统计、节奏、预计的发布、最近的抓取。"
    ),
    "Id, address or title.": "ID、地址或标题。",
    "Follow a source, or change the one that has this address.": "关注一个来源，或修改此地址的来源。",
    "Address; of a public account, its id at WeRSS.": "地址；公众号则为它在 WeRSS 的 ID。",
    "rss, werss, maccms or json.": "rss、werss、maccms 或 json。",
    "What to call it; its own title by default.": "名称；默认用它自己的标题。",
    "P0 (15 min) to P6 (24 h), until its own is learned.": "P0（15 分钟）到 P6（24 小时），学到自己的节奏之前使用。",
    "Of a JSON list: path=data.list, id=…, title=…, link=…, time=….": (
        "JSON 列表的字段：path=data.list、id=…、title=…、link=…、time=…。"
    ),
    "Show what would happen; change nothing.": "只显示会发生什么，不做改动。",
    "Follow the feeds of an OPML file; known ones stay as they are.": "关注 OPML 文件里的来源；已有的不变。",
    "OPML, as feed readers export it.": "阅读器导出的 OPML。",
    "Write the followed feeds as OPML.": "把关注的来源写成 OPML。",
    "Where to; printed by default.": "写到哪里；默认打印。",
    "Poll what is due now, or the sources named, without Dagster.": "不经 Dagster，立即抓取到期的或指定的来源。",
    "Ids, addresses or titles; default: all due.": "ID、地址或标题；默认为全部到期的。",
    # --- digest ---
    "The daily digest: its slots, its articles, and what is pushed to whom.": "每日摘要：时段、文章和推送。",
    "Run a slot now, without Dagster; one that succeeded is not run again. Exit with 1 if it failed.": (
        "不经 Dagster，立即运行一个时段；已成功的不再运行。失败则以 1 退出。"
    ),
    "Such as '2026-11-20|07:00'; default: last due.": "如 '2026-11-20|07:00'；默认为最近到点的。",
    "Show the slots of the last days: what each took in, analysed and found, and what went wrong.": (
        "显示最近几天的时段：收取、分析、发现了什么，出了什么错。"
    ),
    "How many days back.": "往回多少天。",
    "Say what became of articles: body, analysis, score, and why there is none.": (
        "说明文章的处理情况：正文、分析、得分，以及为何没有。"
    ),
    "Words of an article's title.": "文章标题中的词。",
    "Write subject.md and rubric.md where they are not there yet, and say which version is in force.": (
        "缺少 subject.md 和 rubric.md 时写出，并说明当前使用的版本。"
    ),
    "Forget WeRSS's token and refused logins, and log in once: after the password was put right.": (
        "忘掉 WeRSS 的令牌和被拒的登录，再登录一次：改正密码之后使用。"
    ),
    "Send what is due in the outbox now, without Dagster, or a test message; exit with 1 if one was not taken.": (
        "不经 Dagster，立即发送发件箱里到期的，或一条测试消息；有未被接收的则以 1 退出。"
    ),
    "Send a test message to this channel; all for all.": "向此渠道发测试消息；all 为全部。",
    "Show the messages of the outbox: what arrived, what waits, and why.": "显示发件箱：已送达的、等待的及原因。",
    "How many, the newest first.": "显示多少条，最新的在前。",
    # --- tmdb ---
    "TMDB's answers in PostgreSQL, and the graph of films and people.": "PostgreSQL 中的 TMDB 资料，及影片与人物的图。",
    "Create or upgrade the schema tmdb, and the constraints of the graph database.": (
        "建立或升级模式 tmdb，以及图数据库的约束。"
    ),
    "Create the graph's constraints and indexes, too.": "同时建立图数据库的约束和索引。",
    "Check what the system needs; exit with 1 if something fails. It changes nothing.": (
        "检查本系统所需；有一项不通过则以 1 退出。不改动任何东西。"
    ),
    "Look at the graph database, too.": "同时检查图数据库。",
    "Take recorded answers in as if TMDB had just given them, and say of each what changed; 1 if one is unreadable.": (
        "装入录制的应答，如同刚从 TMDB 取得，并逐个说明变化；有读不懂的则以 1 退出。"
    ),
    "Recorded answers, one JSON a line; gz, xz.": "录制的应答，每行一个 JSON；可为 gz、xz。",
    "Take TMDB's daily list of ids in: a stub of each entity that is not known.": (
        "装入 TMDB 每日的 ID 列表：为未知的实体建立占位行。"
    ),
    "What the list is of.": "列表的种类。",
    "As TMDB offers it every day: one JSON a line; gz, xz.": "TMDB 每日提供的文件：每行一个 JSON；可为 gz、xz。",
    "Or: fetch the list of this day.": "或者：下载这一天的列表。",
    "Ask TMDB for entities with their credits, store them, and say what changed; exit with 1 if one is not had.": (
        "向 TMDB 请求实体及演职员，存储并说明变化；有取不到的则以 1 退出。"
    ),
    "As in TMDB's paths: movie/603 tv/1396.": "如 TMDB 路径：movie/603 tv/1396。",
    "Of the answers; the base language without it.": "应答的语言；默认为基本语言。",
    "Answer a question about films, series and people from TMDB; exit with 1 if TMDB gives no answer.": (
        "用 TMDB 回答关于影片、剧集和人物的问题；没有答案则以 1 退出。"
    ),
    "As people ask: 《喜宴》的导演是谁？": "如人们所问：《喜宴》的导演是谁？",
    "What the question is about where it does not say: movie or tv.": "问题没有说明时指什么：movie 或 tv。",
    "Whose question it is; without it nothing is written down.": "谁的提问；不给则不记录。",
    "In which session; without it nothing is written down.": "所在的会话；不给则不记录。",
    "Write nothing down.": "不记录。",
    "Write to PostgreSQL what waits in this machine's spool; exit with 1 if something is left.": (
        "把本机暂存的写入 PostgreSQL；有剩余则以 1 退出。"
    ),
    "Say how many wait, and write nothing.": "只说明有多少在等待，不写入。",
    "Serve recorded answers as TMDB's API does, on loopback, until Ctrl-C.": (
        "在本机以 TMDB API 的形式提供录制的应答，直到 Ctrl-C。"
    ),
    "Recorded answers; the bundled ones without.": "录制的应答；默认用自带的。",
    "Port on loopback.": "本机端口。",
    "Bring what changed into the graph, until nothing is due; exit with 1 if something could not be written.": (
        "把变化写入图，直到没有到期的；有写不进去的则以 1 退出。"
    ),
    "Stop after this long.": "运行这么多秒后停止。",
    "Empty the graph and build it again from the stored answers. A dry run unless --no-dry-run is given.": (
        "清空图并用存储的资料重建。默认只演练，加 --no-dry-run 才执行。"
    ),
    "Say from how much, and change nothing.": "只说明数量，不做改动。",
    "Queue again what was put aside because it could not be written to the graph.": "把写不进图而搁置的重新排队。",
    "Delete what is kept no longer: questions, done rows of the outbox, answers older than TMDB's terms allow.": (
        "删除不再保留的：提问、已完成的出站行、超过 TMDB 条款期限的资料。"
    ),
    "Say what would go, and change nothing.": "只说明会删除什么，不做改动。",
    "Delete all questions of a user, or of a conversation, and what else names them.": (
        "删除某个用户或某次对话的全部提问，以及其他提到它们的记录。"
    ),
    "Whose questions.": "谁的提问。",
    "Or: of which conversation.": "或者：哪次对话。",
    "Ask the graph: who directed a title, who acts together, a director's regulars, how two people are connected.": (
        "查询图：谁导演、谁常合作、导演的常用演员、两人如何关联。"
    ),
    "directors, co-actors, regulars or path.": "directors 导演、co-actors 合作演员、regulars 常用演员、path 路径。",
    "Of whom or what: one name; two for path.": "关于谁或什么：一个名称；path 要两个。",
    "Rows at most.": "最多行数。",
}
