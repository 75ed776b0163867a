"""Resampling, tests and corrections for multiple tests."""
