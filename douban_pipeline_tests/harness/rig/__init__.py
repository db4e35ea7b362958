"""Real parts on this machine, for benchmarks and the soak: servers, Dagster's processes, and what they use of it."""
