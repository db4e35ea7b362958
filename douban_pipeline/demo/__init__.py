"""The demo: an embedded library and samples (`data`), run through Dagster against simulated upstreams (`stand_ins`)."""
