"""Simulated upstreams that only tests and benchmarks use, with the faults of the real ones."""
