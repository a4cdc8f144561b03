"""Why a text was not looked through to its end. Each becomes `incomplete`, which is denied."""


class Incomplete(Exception):
    """The root of these. Says nothing of the text."""


class TooSlow(Incomplete):
    """Not done in the time that an inspection has."""


class TooManyPlaces(Incomplete):
    """More candidates than can be looked at."""
