"""Side-by-side timings, each beside a check that the faster way is right. Run: ``python -m benchmarks``."""
