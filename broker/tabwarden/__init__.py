"""Tabwarden's broker: agents act in a person's browser under signed policy, and every act is on record.

Embed it with `start_agent_control`; call it with `AgentClient` or `BlockingClient`.
"""

from tabwarden.actions import ACTIONS
from tabwarden.authority.principals import Grant
from tabwarden.blocking import BlockingClient
from tabwarden.client import AgentClient
from tabwarden.control import AgentControl
from tabwarden.errors import ActionError, CallFailed, ClientError, Code, ContentClass, TabwardenError
from tabwarden.limits import Limits
from tabwarden.model import Authorization, Caller, ConnectionDescriptor
from tabwarden.starting import start_agent_control

__all__ = [
    "ACTIONS",
    "ActionError",
    "AgentClient",
    "AgentControl",
    "Authorization",
    "BlockingClient",
    "CallFailed",
    "Caller",
    "ClientError",
    "Code",
    "ConnectionDescriptor",
    "ContentClass",
    "Grant",
    "Limits",
    "TabwardenError",
    "start_agent_control",
]
