"""What rules a served broker: the two lists of its settings, or a signed policy, behind one face."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import trio
from tabwarden.authority.principals import IdentityMode
from tabwarden.clock import SystemClock
from tabwarden.errors import ConfigurationError
from tabwarden.model import Authorization, Caller
from tabwarden.ports import Authorizer, PersonWait

from tabwarden_adapters.application import SECTIONS, ApplicationPolicy, PolicySource, company_bookmark
from tabwarden_adapters.browser import BrowserContext, NetworkPolicy
from tabwarden_adapters.cli.policy_work import state_file
from tabwarden_adapters.cli.settings import ServeSettings
from tabwarden_adapters.policy import PolicyDocument, PolicyReport, SignedPolicy, StaticPolicy

# What a signed policy says for itself: both at once would leave it open which one holds.
_SAID_BY_POLICY = ("scopes", "ask", "allowed_hosts", "resource_hosts", "browser_context")
_SAID_OF_APPLICATION = ("visible", "locked", "bookmarks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """The parts that a broker is put together with. `application_scopes` is whether there may ever be one."""

    authorize: Authorizer
    network: NetworkPolicy
    version: Callable[[], int]
    application: PolicySource
    scopes: frozenset[str]
    application_scopes: bool
    identity_mode: IdentityMode
    browser_context: BrowserContext
    signed: SignedPolicy | None = None


def static_ruling(settings: ServeSettings) -> Ruling:
    """By the lists of the settings. Raises `ConfigurationError`."""
    policy = StaticPolicy(
        {
            "scopes": settings.scopes,
            "ask": settings.ask,
            "allowed_hosts": settings.allowed_hosts,
            "resource_hosts": settings.resource_hosts,
        }
    )
    application = settings.application.policy(policy.policy_version)
    return Ruling(
        authorize=policy,
        network=policy,
        version=lambda: policy.policy_version,
        application=lambda caller: application,
        scopes=frozenset(settings.scopes),
        application_scopes=any(scope.startswith(("settings:", "bookmarks:")) for scope in settings.scopes),
        identity_mode="legacy",
        # In a host's browser there is nothing but what is the person's own.
        browser_context=settings.browser_context or ("shared" if settings.host else "isolated"),
    )


async def signed_ruling(
    settings: ServeSettings,
    path: Path,
    report: Callable[[PolicyReport], None],
    on_change: Callable[[], Awaitable[None]],
) -> Ruling:
    """By the signed policy at `path`, taken now. `report` and `on_change` as for `SignedPolicy`.

    Raises `ConfigurationError`: settings that the policy is to say, a device that is not enrolled, a policy
    that is not taken.
    """
    _check_alone(settings)

    def load() -> tuple[SignedPolicy, PolicyReport]:
        folder = Path(settings.policy_state) if settings.policy_state else None
        state = state_file(folder, settings.policy_protector)
        policy = SignedPolicy(path, state, SystemClock(), report=report, on_change=on_change)
        return policy, policy.load()

    policy, first = await trio.to_thread.run_sync(load)
    document = policy.document
    if document is None:
        raise ConfigurationError(first.message)
    agents = document.agents
    return Ruling(
        authorize=AsStarted(policy, agents.browser_context),
        network=policy,
        version=lambda: policy.policy_version,
        application=ApplicationOf(policy),
        scopes=frozenset(agents.scopes),
        application_scopes=True,  # a later version may publish some
        identity_mode=agents.identity_mode,
        browser_context=agents.browser_context,
        signed=policy,
    )


class AsStarted:
    """A signed policy, for as long as it asks for the browser that was started. The identity mode it looks
    after itself: callers of the other one have no rights."""

    def __init__(self, policy: SignedPolicy, browser_context: BrowserContext) -> None:
        self._policy = policy
        self._browser_context = browser_context

    async def __call__(
        self,
        action: str,
        args: msgspec.Struct,
        scope: str,
        session_id: str | None,
        *,
        caller: Caller,
        waiting_for_person: PersonWait,
    ) -> Authorization:
        """See `Authorizer`."""
        document = self._policy.document
        if document is not None and document.agents.browser_context != self._browser_context:
            return Authorization(False, rule="agents.browserContext.restart")
        return await self._policy(
            action, args, scope, session_id, caller=caller, waiting_for_person=waiting_for_person
        )


class ApplicationOf:
    """What the policy in force says of settings and bookmarks. Implements `PolicySource`."""

    def __init__(self, policy: SignedPolicy) -> None:
        self._policy = policy
        self._made: tuple[PolicyDocument, ApplicationPolicy] | None = None

    def __call__(self, caller: Caller, /) -> ApplicationPolicy:
        document = self._policy.document
        if document is None:
            return ApplicationPolicy(version=0)
        if self._made is None or self._made[0] is not document:
            self._made = (document, application_policy(document))
        return self._made[1]


def application_policy(document: PolicyDocument) -> ApplicationPolicy:
    """All sections that agents can know of at all, less what the document hides. Raises
    `ConfigurationError`, which a document that was checked does not."""
    hidden = frozenset(document.settings.hidden_sections)
    return ApplicationPolicy(
        version=document.version,
        visible=SECTIONS - hidden,
        hidden=hidden,
        locked=frozenset(document.settings.locked_sections),
        appearance=document.settings.appearance,
        managed=tuple(company_bookmark(one.id, one.title, one.url, one.folder) for one in document.bookmarks),
    )


def _check_alone(settings: ServeSettings) -> None:
    for part, names, prefix in (
        (settings, _SAID_BY_POLICY, ""),
        (settings.application, _SAID_OF_APPLICATION, "application."),
    ):
        for name in names:
            if getattr(part, name):
                raise ConfigurationError(
                    f"{prefix}{name}: a signed policy says this for itself: leave it out, or leave out policy"
                )
