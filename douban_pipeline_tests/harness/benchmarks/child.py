"""What one process of a benchmark does: ``python -m douban_pipeline_tests.harness.benchmarks.child FOLDER``.

``FOLDER/job.json`` says what; what it reports while it works goes to ``FOLDER/said``, what it found to
``FOLDER/figures.json``. The pipeline's settings come from the environment.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import load_settings
from douban_pipeline_tests.harness.benchmarks.measuring import Measure, World
from douban_pipeline_tests.harness.benchmarks.prepare import fill_library, take_in

JOB, SAID, FIGURES, SCRATCH = "job.json", "said", "figures.json", "scratch"
FILL, TAKE_IN, MEASURE = "fill", "take in", "measure"


def work(folder: Path) -> None:
    """Do the job in ``folder``."""
    job: dict[str, Any] = json.loads((folder / JOB).read_text(encoding="utf-8"))
    services = open_services(load_settings())
    with (folder / SAID).open("a", encoding="utf-8", buffering=1) as said:

        def say(words: str) -> None:
            said.write(words.replace("\n", " ") + "\n")

        try:
            if job["kind"] == FILL:
                fill_library(services, job["size"], job["seed"], say)
            elif job["kind"] == TAKE_IN:
                take_in(services, say)
            else:
                measure = _measure(job["module"], job["name"])
                figures = measure.run(World(services, job["size"], job["seed"], folder / SCRATCH, say))
                found = json.dumps([asdict(figure) for figure in figures], ensure_ascii=False)
                (folder / FIGURES).write_text(found, encoding="utf-8")
        finally:
            services.close()


def _measure(module: str, name: str) -> Measure:
    measures: tuple[Measure, ...] = importlib.import_module(module).MEASURES
    return next(measure for measure in measures if measure.name == name)


if __name__ == "__main__":
    # A shell that starts us in the background has it ignored; our parent stops us by it, and we clean up.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        work(Path(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
