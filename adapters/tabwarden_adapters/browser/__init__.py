"""The browser room: a Chromium of our own over a CDP pipe, and the actions that agents may do in it."""

from tabwarden_adapters.browser.adapters import create_agent_adapters
from tabwarden_adapters.browser.body_inspection import BodyInspector
from tabwarden_adapters.browser.capture import ContextToken, TabContext
from tabwarden_adapters.browser.cdp import Transport
from tabwarden_adapters.browser.cdp_tab import CdpTab
from tabwarden_adapters.browser.chromium import Chromium, find_chromium, launch_chromium
from tabwarden_adapters.browser.chromium_adapters import create_chromium_adapters
from tabwarden_adapters.browser.contract import (
    Acted,
    AdapterEvent,
    AiGateway,
    AppControl,
    CapturedContext,
    Deed,
    DestinationPolicy,
    Operation,
    Page,
    SessionInfo,
)
from tabwarden_adapters.browser.egress_proxy import Egress, EgressCounters, HostCounts
from tabwarden_adapters.browser.grant_rules import NetworkPolicy
from tabwarden_adapters.browser.guarded import (
    BrowserContext,
    GrantEnds,
    Guard,
    GuardedBrowser,
    guarded_chromium,
)
from tabwarden_adapters.browser.guarded_attached import AttachedBrowser, guarded_attached
from tabwarden_adapters.browser.host import ChromiumHost
from tabwarden_adapters.browser.hosted import HostedChromium, hosted_chromium
from tabwarden_adapters.browser.inventory import TabInfo
from tabwarden_adapters.browser.isolated import create_isolated_adapters
from tabwarden_adapters.browser.network_guard import NetworkGuard
from tabwarden_adapters.browser.page_context import CapturedText, captured_text
from tabwarden_adapters.browser.reading import PageWindow
from tabwarden_adapters.browser.whereabouts import Whereabouts, WhereIs

__all__ = [
    "Acted",
    "AdapterEvent",
    "AiGateway",
    "AppControl",
    "AttachedBrowser",
    "BodyInspector",
    "BrowserContext",
    "CapturedContext",
    "CapturedText",
    "CdpTab",
    "Chromium",
    "ChromiumHost",
    "ContextToken",
    "Deed",
    "DestinationPolicy",
    "Egress",
    "EgressCounters",
    "GrantEnds",
    "Guard",
    "GuardedBrowser",
    "HostCounts",
    "HostedChromium",
    "NetworkGuard",
    "NetworkPolicy",
    "Operation",
    "Page",
    "PageWindow",
    "SessionInfo",
    "TabContext",
    "TabInfo",
    "Transport",
    "WhereIs",
    "Whereabouts",
    "captured_text",
    "create_agent_adapters",
    "create_chromium_adapters",
    "create_isolated_adapters",
    "find_chromium",
    "guarded_attached",
    "guarded_chromium",
    "hosted_chromium",
    "launch_chromium",
]
