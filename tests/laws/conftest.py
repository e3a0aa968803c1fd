"""Let Hypothesis draw the same examples everywhere, unless HYPOTHESIS_PROFILE=search asks for new ones."""

import os

from hypothesis import HealthCheck, settings

QUIET = [HealthCheck.too_slow, HealthCheck.differing_executors]
settings.register_profile("same", max_examples=4, deadline=None, derandomize=True, suppress_health_check=QUIET)
settings.register_profile("search", max_examples=40, deadline=None, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
