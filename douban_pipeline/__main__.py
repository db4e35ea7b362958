"""Entry point of the command line: ``douban-pipeline`` and ``python -m douban_pipeline``.

It joins the operators' commands and those of the demo, which know each other in one direction only.
"""

from douban_pipeline.demo.cli import add_commands
from douban_pipeline.ops.cli import app, main

add_commands(app)

if __name__ == "__main__":
    main()
