"""Operating characteristics: simulated cohorts with a known truth, and what every method says of them."""
