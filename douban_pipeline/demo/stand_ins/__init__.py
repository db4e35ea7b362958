"""Simulated upstreams on loopback, over real HTTP and SMTP, with their faults; for the demo, tests and benchmarks."""
