"""Dagster code locations beside Douban's, whose own is `douban_pipeline.definitions`: one module a location.

A further system gets a location of its own, so that it is loaded, reloaded and restarted apart from the others, and its
runs are counted, limited and pruned apart from theirs. To add one:

1. Its system has ``build_defs()`` in ``<system>/definitions.py``, as Douban's in `douban_pipeline.douban.definitions`.
   Asset keys are unique in the whole instance; its pools and its assets' groups begin with its name.
2. ``locations/<system>.py`` holds ``defs = build_defs()`` and nothing else, as `douban_pipeline.definitions` does.
3. ``workspace.yaml`` names the module, ``douban_pipeline.locations.feeds``, and the location, ``feeds``;
   ``deploy/workspace.yaml`` gets a code server of its own. Installations that do without the system leave it out of
   their file.
4. Every job has the tags of `dagster_kit.runs.run_tags`; their ``system`` says whose its runs are. No limit has to be
   added in ``dagster.yaml``: each location may have five runs under way. Where more than five locations are installed,
   ``max_concurrent_runs`` grows by ten a location, so that none can starve another.
5. Its sensors count runs by `dagster_kit.runs.JobRuns`, and a job of its own prunes its history by
   `dagster_kit.run_history`. The limits of its pools are set by ``douban-pipeline setup``,
   to which `ops.systems` names it.
"""
