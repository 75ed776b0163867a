"""The phantom world: drawn images with a planted truth, in the layouts of the real releases.

:mod:`~frame.cohorts.phantom.truth` says what is planted, :mod:`~frame.cohorts.phantom.population` who is in
the world, :mod:`~frame.cohorts.phantom.drawing` what is drawn of them, and
:mod:`~frame.cohorts.phantom.world` writes the sources to disk. These are drawings by a program: they show
what a method finds where the cause is known, and nothing about patients.
"""
