"""Why an engine has no host to ask: a closed set. Each means site mode `off` and approvals `no`."""

from enum import StrEnum


class HostProblem(StrEnum):
    """What was wrong, for a person to read; never text of the file, the token or an answer."""

    NO_FILE = "no host.json: is the host running?"
    FILE_REFUSED = "host.json or its folder is not this user's alone"
    FILE_MALFORMED = "host.json is not what the protocol says"
    NOT_LOOPBACK = "host.json names another address than 127.0.0.1"
    DEAD = "the process that wrote host.json is gone"
    CHANGED = "another host has taken the place of the one that was attached"
    UNREACHABLE = "nothing answers at the host's port"
    FOREIGN = "the host's port belongs to another user's process"
    TIMEOUT = "the host did not answer in time"
    UNAUTHORIZED = "the host does not accept the token of host.json"
    REDIRECT = "the host answered with a redirect"
    STATUS = "the host answered with an error"
    ANSWER = "the host's answer is not what the protocol says"
    TOO_LARGE = "the host's answer is too large"


class HostUnavailable(Exception):
    """The host gave no answer that may be believed."""

    def __init__(self, problem: HostProblem) -> None:
        super().__init__(problem.value)
        self.problem = problem
