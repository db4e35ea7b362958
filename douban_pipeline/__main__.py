"""Entry point of the command line: ``douban-pipeline`` and ``python -m douban_pipeline``.

It joins the operators' commands and those of the demo, which know each other in one direction only. Ctrl-C while it is
still loading ends it as a signal does, without a word: nothing has been done yet.
"""

import signal
import threading

_LOADED_BY_MAIN = threading.current_thread() is threading.main_thread()
_ON_INTERRUPT = signal.getsignal(signal.SIGINT)
if _LOADED_BY_MAIN:  # only there can it be set
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from douban_pipeline.demo.cli import add_commands  # noqa: E402 (a signal during this import is the point)
from douban_pipeline.ops.cli import app, main  # noqa: E402

add_commands(app)
if _LOADED_BY_MAIN:
    signal.signal(signal.SIGINT, _ON_INTERRUPT)

if __name__ == "__main__":
    main()
