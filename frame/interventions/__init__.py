"""Step two: what a difference between subgroups responds to, and how groups lie in a representation."""
