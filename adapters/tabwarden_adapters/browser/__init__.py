"""The browser room: a Chromium of our own over a CDP pipe, and the actions that agents may do in it."""

from tabwarden_adapters.browser.adapters import BrowserHost, DestinationPolicy, create_agent_adapters
from tabwarden_adapters.browser.capture import ContextToken, TabContext
from tabwarden_adapters.browser.chromium import Chromium, find_chromium, launch_chromium
from tabwarden_adapters.browser.host import ChromiumHost
from tabwarden_adapters.browser.inventory import TabInfo
from tabwarden_adapters.browser.reading import PageWindow

__all__ = [
    "BrowserHost",
    "Chromium",
    "ChromiumHost",
    "ContextToken",
    "DestinationPolicy",
    "PageWindow",
    "TabContext",
    "TabInfo",
    "create_agent_adapters",
    "find_chromium",
    "launch_chromium",
]
