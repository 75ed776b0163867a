"""Mitigation methods, fitted on cached features, and the difference they can achieve."""
