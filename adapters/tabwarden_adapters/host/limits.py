"""Every number of the host control protocol's two sides, each with its reason."""

from dataclasses import dataclass, fields

from tabwarden.errors import ConfigurationError

MAX_BODY = 2 * 1024 * 1024  # the reference's 2 MB: a whole page's text in one `POST /log`
MAX_REPLY = 256 * 1024  # what an engine reads of one reply: some thousand target ids
MAX_HOST_FILE = 4096  # host.json has four short fields
PERSON_WAIT_S = 300.0  # the reference: an engine waits up to five minutes for a person
MAX_ORIGIN, MAX_URL = 2048, 8192  # characters; longer than any real one
MAX_WORDS = 4000  # a summary or reason, in characters: what a person may be asked to read
MAX_NAME = 200  # a log entry's type, an agent's name


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimits:
    """What an embedding host may move. Times in seconds."""

    connections: int = 32  # one engine has one or two at a time; each is a task and a file descriptor
    waiting: int = 8  # questions before the person at once; fewer than connections, so /policy is answered
    header_bytes: int = 8 * 1024  # a token, a Host and what HTTP libraries add need 500
    header_fields: int = 48  # as above: some twelve
    head_s: float = 5.0  # loopback: anything slower is holding a slot
    body_s: float = 10.0  # 2 MB over loopback, with room for a busy machine
    send_s: float = 5.0  # a reply is small: the kernel takes it at once unless the peer plays dead
    answer_s: float = 10.0  # the host's own answers, where no person is asked
    person_wait_s: float = PERSON_WAIT_S
    cancel_grace_s: float = 0.25  # a backend's time to stop before it is answered without it
    close_s: float = 2.0  # how long closing waits for replies, and for work that ignores cancellation
    log_entries: int = 500  # a day's session to scroll through
    log_characters: int = 4 * 1024 * 1024  # all of them together, so that a flood of long ones is no growth

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ConfigurationError(f"limit {field.name} must be greater than 0")
        if self.waiting >= self.connections:
            raise ConfigurationError("limit waiting must be less than connections")
