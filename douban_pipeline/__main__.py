"""Entry point of the command line: ``douban-pipeline`` and ``python -m douban_pipeline``."""

from douban_pipeline.ops.cli import main

if __name__ == "__main__":
    main()
