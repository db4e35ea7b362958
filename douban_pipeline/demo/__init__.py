"""Library, sample and simulated upstreams used by the demo, the tests and the benchmark."""
