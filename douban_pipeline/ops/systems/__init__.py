"""The systems beside Douban's, as the command line serves them: a module a system, and what all of them share.

To add one, write ``systems/<name>.py`` with ``SYSTEM = System(…)`` and name it in `registry.MODULES`. The commands
``setup``, ``check``, ``upgrade``, ``grants``, ``settings``, ``backup`` and ``restore`` then serve it where
``DOUBAN_PIPELINE_SYSTEMS`` or ``--system`` names it.
"""
