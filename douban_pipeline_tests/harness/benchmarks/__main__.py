"""Entry point: ``python -m douban_pipeline_tests.harness.benchmarks``."""

import signal

if __name__ == "__main__":
    # A shell starts what runs in the background with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from douban_pipeline_tests.harness.benchmarks.command import main

    main()
