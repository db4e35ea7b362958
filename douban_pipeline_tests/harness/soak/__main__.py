"""Entry point: ``python -m douban_pipeline_tests.harness.soak``."""

import signal

if __name__ == "__main__":
    # A shell starts what runs in the background with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import typer

    from douban_pipeline_tests.harness.soak.command import run

    typer.run(run)
