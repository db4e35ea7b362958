"""A library, a sample and upstreams that answer from it: what the demo, the tests and the benchmark run on."""
