"""For all tests: no time within which something has to be shown, and Ctrl-C as a terminal sends it."""

import signal
from contextlib import suppress

from hypothesis import settings

settings.register_profile("frame", deadline=None)
settings.load_profile("frame")

# A shell that starts the tests in the background lets them ignore SIGINT, and every process that they start
# would inherit that; the tests of Ctrl-C need it to arrive.
with suppress(ValueError):  # not in the main thread
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
