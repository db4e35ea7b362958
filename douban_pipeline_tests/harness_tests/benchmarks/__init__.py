"""The benchmarks: what is told of a number, and that a measure that goes wrong harms nothing."""
