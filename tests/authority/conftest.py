"""Hypothesis on a machine that is busy with other things: no example is refused for being slow."""

from hypothesis import HealthCheck, settings

settings.register_profile("tabwarden", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tabwarden")
