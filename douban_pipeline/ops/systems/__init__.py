"""The systems beside Douban's in the command line: one module per system, and their shared code.

To add one, write ``systems/<name>.py`` with ``SYSTEM = System(…)`` and name it in `registry.MODULES`. The commands
``setup``, ``check``, ``upgrade``, ``grants``, ``settings``, ``backup`` and ``restore`` then handle it where
``DOUBAN_PIPELINE_SYSTEMS`` or ``--system`` names it.
"""
