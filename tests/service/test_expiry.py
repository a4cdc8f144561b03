"""A credential that merely expires ends as one that is revoked does, and is told as what it is."""

from tabwarden import Grant

from tests.attacks.serving import serve
from tests.service.stations import lifecycle
from tests.support.fakes import ManualClock


async def test_what_has_expired_is_ended_and_noted_once():
    clock = ManualClock()
    async with serve(identity_mode="individual", clock=clock) as broker:
        control = broker.control
        await control.reconcile_principals(
            [Grant("one", 1), Grant("two", 1, expires_at_ms=clock.wall + 2000)]
        )
        await control.issue_principal("one", 1, clock.wall + 1000)
        await control.issue_principal("two", 1)
        await control.end_expired()
        clock.advance(1000)
        for _ in range(2):
            await control.end_expired()
        assert lifecycle(broker.audit)[3:] == [("principal-expired", "one", 1)]
        clock.advance(1000)
        await control.end_expired()
        await control.revoke_principal("two")
        assert lifecycle(broker.audit)[3:] == [
            ("principal-expired", "one", 1),
            ("principal-expired", "two", 1),
        ]
        # The grant that outlives its credential may have another one.
        await control.issue_principal("one", 1, clock.wall + 1000)
        assert lifecycle(broker.audit)[5:] == [("principal-issued", "one", 1)]
