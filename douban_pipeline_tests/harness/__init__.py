"""What tests run on: benchmarks, the soak, real servers, generated libraries, shared fixtures. Not shipped."""
