"""Who may do what, over any order of events: the real parts beside a plain model that shares no code with
them.

`make properties` runs as many steps as TABWARDEN_STEPS says and prints what they were; `make test` runs a few
thousand. There are two levels.

*Fast*: a real `SignedPolicy` on a real sealed `StateFile`, documents signed and verified with Ed25519 and
ML-DSA-87, a real broker (`start_agent_control`) with its registry, the real proof (HMAC) of each request,
and `run_call`: authorize, audit, dispatch, project, seal, look again. Left out: the socket, the HTTP parser,
M1 and M2, and the key exchange of M3; each request opens under one fixed set of keys.

*Whole*: nothing left out. `AgentClient` calls the broker over loopback.

In both the clocks, the audit and the adapters are fakes; the adapters record, at the moment they are entered,
whether the model says that the call may be there. The state's seal is the key file's, and its folder is in
memory where there is one, so that a sync costs nothing: durability is not what is shown here.
"""
