"""Experiments: each has named units that are computed on their own, and a table that holds all of them.

A module of this room gives ``TITLE``, ``units(workspace)``, ``run_unit(workspace, unit)`` and
``collect(workspace)``; :mod:`frame.experiments.contract` says what each must be.
"""
