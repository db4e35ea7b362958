"""Embedded library, sample data and simulated upstreams for the demo, the tests and the benchmark."""
