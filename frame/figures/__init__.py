"""Figures: one module per figure, each drawing from tidy tables only."""
