"""For all tests: a property holds on a busy machine too, so none has to be shown within a time."""

from hypothesis import settings

settings.register_profile("frame", deadline=None)
settings.load_profile("frame")
