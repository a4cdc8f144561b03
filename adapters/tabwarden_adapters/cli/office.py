"""What an administrator's commands do in a running broker."""

from typing import Any

from tabwarden.errors import ConfigurationError
from tabwarden_observability import Tracing

from tabwarden_adapters.administration import (
    AnswerApproval,
    ForgetApproval,
    IssueGrant,
    ListApprovals,
    ListGrants,
    ListTraces,
    ReloadPolicy,
    Request,
    RevokeGrant,
)
from tabwarden_adapters.cli.consent import Consent
from tabwarden_adapters.cli.governing import Ruling
from tabwarden_adapters.cli.principals import Issued, Principals
from tabwarden_adapters.policy import PolicyDocument, SignedPolicy, write_time


class Office:
    """Implements `Administrator`."""

    def __init__(
        self, ruling: Ruling, consent: Consent, principals: Principals | None, tracing: Tracing
    ) -> None:
        self._tracing = tracing
        self._ruling = ruling
        self._consent = consent
        self._principals = principals

    async def __call__(self, request: Request, /) -> Any:
        """Plain JSON values. Raises `ConfigurationError` saying what to do."""
        match request:
            case ListGrants():
                return self._grants()
            case IssueGrant(id=name, expires_at_ms=expires):
                return await self._issue(name, expires)
            case RevokeGrant(id=name):
                return {"id": name, "revoked": await self._individual().revoke(name)}
            case ReloadPolicy():
                report = await self._signed().reload()
                return {"kind": report.kind, "version": report.version, "message": report.message}
            case ListApprovals():
                return self._consent.listed()
            case AnswerApproval():
                return self._consent.answer(request)
            case ForgetApproval(id=agreed):
                return self._consent.forget(agreed)
            case ListTraces(limit=limit, after=after):
                return await self._tracing.listed(limit, after)

    def _grants(self) -> list[dict[str, Any]]:
        issued = self._individual().issued()
        document = self._document()
        listed = []
        for grant in document.grants:
            credential = issued.get(grant.id)
            listed.append(
                {
                    "id": grant.id,
                    "name": grant.name,
                    "enabled": grant.enabled,
                    "generation": grant.generation,
                    "expires": grant.expires or document.expires,
                    "scopes": list(grant.scopes),
                    "credential": None if credential is None else _described(credential),
                }
            )
        return listed

    async def _issue(self, name: str, expires_at_ms: int | None) -> dict[str, Any]:
        principals, document = self._individual(), self._document()
        grant = next((one for one in document.grants if one.id == name), None)
        if grant is None:
            raise ConfigurationError(
                f"the policy in force has no grant {name!a}: see `tabwarden grants list`"
            )
        if not grant.enabled:
            raise ConfigurationError(f"grant {name!a} is disabled: publish a policy that enables it")
        return {"id": name, **_described(await principals.issue(name, grant.generation, expires_at_ms))}

    def _document(self) -> PolicyDocument:
        document = self._signed().document
        if document is None:
            raise ConfigurationError("no policy is in force: publish one that has not expired")
        return document

    def _signed(self) -> SignedPolicy:
        if self._ruling.signed is None:
            raise ConfigurationError("this broker has no signed policy: start it with --policy")
        return self._ruling.signed

    def _individual(self) -> Principals:
        self._signed()
        if self._principals is None:
            raise ConfigurationError(
                "this broker runs in legacy mode, where grants have no credentials of their own: set "
                'agents.identityMode to "individual" in its policy, and start it again'
            )
        return self._principals


def _described(credential: Issued) -> dict[str, Any]:
    expires = credential.expires_at_ms
    return {
        "connection": str(credential.path),
        "generation": credential.generation,
        "expires": None if expires is None else write_time(expires),
    }
