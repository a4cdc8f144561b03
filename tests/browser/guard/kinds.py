# ruff: noqa: E501 - a table of pages: some are longer than a line
"""The table of everything a page can do to reach another host. The matrix's pages are made from it.

In a text, `@U` stands for an `http:` address of the kind's own host, `@S` for `https:`, `@W` for `ws:`, `@H`
for host and port, and `@R` for an address of the page's own site that redirects to `@U`.
"""

from dataclasses import dataclass
from typing import Literal

Place = Literal["frame", "oopif", "page", "worker", "shared", "service", "popup", "gesture", "leave"]


@dataclass(frozen=True)
class Kind:
    """`place` says where the text goes: a frame's HTML, the page's HTML, a worker's script, a popup's HTML, a
    script run with a user gesture, or one run when the page is left."""

    name: str
    place: Place
    text: str
    headers: tuple[tuple[str, str], ...] = ()


def _kinds(place: Place, *rows: tuple[str, str]) -> list[Kind]:
    return [Kind(name, place, text) for name, text in rows]


def _script(code: str) -> str:
    return f"<script>{code}</script>"


_SUBRESOURCES = _kinds(
    "frame",
    ("img", "<img src='@U'>"),
    ("img-srcset", "<img srcset='@U 1x'>"),
    ("picture", "<picture><source srcset='@U'><img></picture>"),
    ("input-image", "<input type=image src='@U'>"),
    ("svg-image", "<svg><image href='@U' width=9 height=9 /></svg>"),
    ("svg-feimage", "<svg><filter id=f><feImage href='@U'/></filter><rect filter='url(#f)' width=9 height=9 /></svg>"),
    ("body-background", "<body background='@U'>"),
    ("css-background", "<p style='background:url(@U)'>x"),
    ("css-image-set", "<p style='background:image-set(\"@U\" 1x)'>x"),
    ("css-list-style", "<li style='list-style-image:url(@U)'>x"),
    ("css-link", "<link rel=stylesheet href='@U'>"),
    ("css-print", "<link rel=stylesheet media=print href='@U'>"),
    ("css-import", "<style>@import '@U';</style>"),
    ("font", "<style>@font-face{font-family:f;src:url(@U)}</style><p style='font-family:f'>x"),
    ("script", "<script src='@U'></script>"),
    ("module", "<script type=module src='@U'></script>"),
    ("dynamic-import", _script("import('@U').catch(() => 0)")),
    ("video", "<video src='@U' preload=auto></video>"),
    ("video-poster", "<video poster='@U'></video>"),
    ("audio", "<audio src='@U' preload=auto></audio>"),
    ("track", "<video crossorigin><track default src='@U'></video>"),
    ("object", "<object data='@U'></object>"),
    ("embed", "<embed src='@U'>"),
    ("iframe", "<iframe src='@U'></iframe>"),
    ("frameset", "<frameset><frame src='@U'></frameset>"),
    ("srcdoc-sandboxed", "<iframe sandbox srcdoc=\"<img src='@U'>\"></iframe>"),
    ("srcdoc", "<iframe srcdoc=\"<img src='@U'>\"></iframe>"),
    ("data-frame", "<iframe src=\"data:text/html,<img src='@U'>\"></iframe>"),
    ("blob-frame", _script("document.body||document.write('<body>');const f=document.createElement('iframe');"
                           "f.src=URL.createObjectURL(new Blob([\"<img src='@U'>\"],{type:'text/html'}));"
                           "document.body.append(f)")),
    ("attribution", "<img attributionsrc='@U' src='data:,x'>"),
)  # fmt: skip

_REQUESTS = _kinds(
    "frame",
    ("fetch", _script("fetch('@U').catch(() => 0)")),
    ("fetch-no-cors", _script("fetch('@U', {mode: 'no-cors'}).catch(() => 0)")),
    ("fetch-preflight", _script("fetch('@U', {method: 'PUT', headers: {'x-y': '1'}}).catch(() => 0)")),
    ("fetch-keepalive", _script("fetch('@U', {method: 'POST', keepalive: true, body: 'x'}).catch(() => 0)")),
    ("fetch-https", _script("fetch('@S').catch(() => 0)")),
    ("xhr", _script("const x = new XMLHttpRequest(); x.open('GET', '@U'); x.send()")),
    ("xhr-sync", _script("try {const x=new XMLHttpRequest();x.open('GET','@U',false);x.send()} catch (e) {}")),
    ("eventsource", _script("new EventSource('@U')")),
    ("beacon", _script("navigator.sendBeacon('@U', 'x')")),
    ("wasm", _script("WebAssembly.compileStreaming(fetch('@U')).catch(() => 0)")),
    ("ping", "<a id=a href='#x' ping='@U'>x</a>" + _script("a.click()")),
    ("image-object", _script("new Image().src = '@U'")),
    ("websocket", _script("new WebSocket('@W')")),
    ("websocket-tls", _script("new WebSocket('wss://@H/')")),
    ("websocketstream", _script("globalThis.WebSocketStream ? new WebSocketStream('@W').opened.catch(() => 0) "
                                ": new WebSocket('@W')")),
    ("fetchlater-now", _script("globalThis.fetchLater ? fetchLater('@S', {activateAfter: 0}) "
                               ": fetch('@S').catch(() => 0)")),
)  # fmt: skip

_NAVIGATIONS = _kinds(
    "frame",
    ("nav-location", _script("location.href = '@U'")),
    ("nav-replace", _script("location.replace('@U')")),
    ("nav-assign-https", _script("location.assign('@S')")),
    ("nav-meta", "<meta http-equiv=refresh content='0;url=@U'>"),
    ("nav-link", "<a id=a href='@U'>x</a>" + _script("a.click()")),
    ("nav-form-get", "<form id=f action='@U'><input name=a></form>" + _script("f.submit()")),
    ("nav-form-post", "<form id=f method=post action='@U'><input name=a></form>" + _script("f.submit()")),
    ("nav-open-self", _script("open('@U', '_self')")),
    ("nav-redirect", _script("location.href = '@R'")),
)

_REDIRECTS = _kinds(
    "frame",
    ("redirect-img", "<img src='@R'>"),
    ("redirect-script", "<script src='@R'></script>"),
    ("redirect-css", "<link rel=stylesheet href='@R'>"),
    ("redirect-font", "<style>@font-face{font-family:f;src:url(@R)}</style><p style='font-family:f'>x"),
    ("redirect-iframe", "<iframe src='@R'></iframe>"),
    ("redirect-object", "<object data='@R'></object>"),
    ("redirect-video", "<video src='@R' preload=auto></video>"),
    ("redirect-fetch", _script("fetch('@R').catch(() => 0)")),
    ("redirect-xhr", _script("const x = new XMLHttpRequest(); x.open('GET', '@R'); x.send()")),
    ("redirect-eventsource", _script("new EventSource('@R')")),
    ("redirect-beacon", _script("navigator.sendBeacon('@R', 'x')")),
    ("redirect-import", _script("import('@R').catch(() => 0)")),
    ("redirect-form", "<form id=f method=post action='@R'></form>" + _script("f.submit()")),
)

_HINTS = _kinds(
    "frame",
    ("preconnect", "<link rel=preconnect href='@U'>"),
    ("preconnect-tls", "<link rel=preconnect href='@S'>"),
    ("prefetch", "<link rel=prefetch href='@U'>"),
    ("preload", "<link rel=preload as=script href='@U'>"),
    ("modulepreload", "<link rel=modulepreload href='@U'>"),
) + _kinds(
    "page",
    ("dns-prefetch", "<link rel=dns-prefetch href='@U'>"),
    ("speculation-prefetch",
     '<script type=speculationrules>{"prefetch":[{"urls":["@S"],"eagerness":"immediate"}]}</script>'),
    ("speculation-prerender",
     '<script type=speculationrules>{"prerender":[{"urls":["@R"],"eagerness":"immediate"}]}</script>'),
    ("manifest", "<link rel=manifest href='@U' crossorigin>"),
    ("favicon", "<link rel=icon href='@U'>"),
)  # fmt: skip

_UDP = _kinds(
    "frame",
    ("webtransport", _script("new WebTransport('@S').ready.catch(() => 0)")),
    ("webrtc-stun", _script("const p=new RTCPeerConnection({iceServers:[{urls:'stun:@H'}]});"
                            "p.createDataChannel('x');p.createOffer().then(o=>p.setLocalDescription(o))")),
    ("webrtc-turn", _script("const p=new RTCPeerConnection({iceServers:[{urls:'turn:@H',username:'u',credential:'c'}]});"
                            "p.createDataChannel('x');p.createOffer().then(o=>p.setLocalDescription(o))")),
) + _kinds(
    "frame",
    ("webrtc-turn-tcp", _script("const p=new RTCPeerConnection({iceServers:[{urls:'turn:@H?transport=tcp',"
                                "username:'u',credential:'c'}]});"
                                "p.createDataChannel('x');p.createOffer().then(o=>p.setLocalDescription(o))")),
)  # fmt: skip

_SENDERS = (
    ("fetch", "fetch('@U').catch(() => 0)"),
    ("xhr", "const x = new XMLHttpRequest(); x.open('GET', '@U'); x.send()"),
    ("eventsource", "new EventSource('@U')"),
    ("websocket", "new WebSocket('@W')"),
    ("import", "try { importScripts('@U') } catch (e) {}"),
    ("redirect", "fetch('@R').catch(() => 0)"),
)
_WORKERS = [
    *_kinds("worker", *((f"worker-{name}", code) for name, code in _SENDERS)),
    *_kinds("shared", *((f"shared-{name}", code) for name, code in _SENDERS)),
    # A service worker has no XMLHttpRequest.
    *_kinds("service", *((f"service-{name}", code) for name, code in _SENDERS if name != "xhr")),
    *_kinds("worker", ("worker-webtransport", "new WebTransport('@S').ready.catch(() => 0)")),
    *_kinds("worker", ("worker-nested", "new Worker(URL.createObjectURL(new Blob([\"fetch('@U')\"])))")),
]

_CROSS_SITE = _kinds(
    "oopif",
    ("oopif-img", "<img src='@U'>"),
    ("oopif-fetch", _script("fetch('@U').catch(() => 0)")),
    ("oopif-websocket", _script("new WebSocket('@W')")),
    ("oopif-beacon", _script("navigator.sendBeacon('@U', 'x')")),
    ("oopif-iframe", "<iframe src='@U'></iframe>"),
    ("oopif-srcdoc", "<iframe sandbox srcdoc=\"<img src='@U'>\"></iframe>"),
    ("oopif-location", _script("location.href = '@U'")),
    ("oopif-worker", _script("new Worker(URL.createObjectURL(new Blob([\"fetch('@U')\"])))")),
)

_POPUPS = _kinds(
    "popup",
    ("popup-location", _script("location.href = '@U'")),
    ("popup-meta", "<meta http-equiv=refresh content='0;url=@U'>"),
    ("popup-form", "<form id=f method=post action='@U'></form>" + _script("f.submit()")),
    ("popup-redirect", _script("location.href = '@R'")),
    ("popup-img", "<img src='@U'>"),
    ("popup-websocket", _script("new WebSocket('@W')")),
) + _kinds(
    "gesture",
    ("open", "open('@U')"),
    ("open-https", "open('@S')"),
    ("open-noopener", "open('@U', '_blank', 'noopener')"),
    ("open-redirect", "open('@R')"),
    ("open-blank-then", "const w = open(); w.location = '@U'"),
    ("open-blank-img", "const w = open(); w.document.write(`<img src='@U'>`)"),
    ("blank-target", "const a = document.createElement('a'); a.href = '@U'; a.target = '_blank'; a.click()"),
    ("ctrl-click", "const a = document.createElement('a'); a.href = '@U'; document.body.append(a);"
                   "a.dispatchEvent(new MouseEvent('click', {ctrlKey: true, bubbles: true, cancelable: true}))"),
    ("shift-click", "const a = document.createElement('a'); a.href = '@U'; document.body.append(a);"
                    "a.dispatchEvent(new MouseEvent('click', {shiftKey: true, bubbles: true, cancelable: true}))"),
    ("form-blank", "const f = document.createElement('form'); f.action = '@U'; f.target = '_blank';"
                   "document.body.append(f); f.submit()"),
)  # fmt: skip

_BROWSER = [
    Kind("csp-report", "frame", "<img src='data:,x'>",
         (("Content-Security-Policy", "img-src 'none'; report-uri @U"),)),
    Kind("link-header-preconnect", "frame", "x", (("Link", "<@U>; rel=preconnect"),)),
    Kind("link-header-preload", "frame", "x", (("Link", "<@U>; rel=preload; as=script"),)),
    Kind("refresh-header", "frame", "x", (("Refresh", "0; url=@U"),)),
    Kind("reporting", "frame", "<img src='data:,x'>",
         (("Reporting-Endpoints", 'e="@S"'), ("Content-Security-Policy", "img-src 'none'; report-to e"))),
    Kind("nel", "frame", "x",
         (("Report-To", '{"group":"n","max_age":99,"endpoints":[{"url":"@S"}]}'),
          ("NEL", '{"report_to":"n","max_age":99,"success_fraction":1}'))),
    Kind("payment", "frame", _script(
        "try { new PaymentRequest([{supportedMethods: '@S'}], {total: {label: 'x', amount: {currency: 'EUR', "
        "value: '1'}}}).canMakePayment().catch(() => 0) } catch (e) {}")),
    Kind("fedcm", "frame", _script(
        "try { navigator.credentials.get({identity: {providers: [{configURL: '@S', clientId: 'x'}]}})"
        ".catch(() => 0) } catch (e) {}")),
    Kind("related-origin", "frame", _script(
        "try { navigator.credentials.get({publicKey: {challenge: new Uint8Array(9), rpId: '@H'.split(':')[0]}})"
        ".catch(() => 0) } catch (e) {}")),
]  # fmt: skip

_LEAVING = _kinds(
    "leave",
    ("leave-beacon", "navigator.sendBeacon('@U', 'x')"),
    ("leave-keepalive", "fetch('@U', {method: 'POST', keepalive: true, body: 'x'})"),
    ("leave-redirect", "navigator.sendBeacon('@R', 'x')"),
    ("leave-image", "new Image().src = '@U'"),
) + _kinds(
    "page", ("leave-fetchlater", _script("globalThis.fetchLater && fetchLater('@S', {activateAfter: 60000})"))
)  # fmt: skip

KINDS: list[Kind] = [
    *_SUBRESOURCES, *_REQUESTS, *_NAVIGATIONS, *_REDIRECTS, *_HINTS, *_UDP, *_WORKERS, *_CROSS_SITE, *_POPUPS,
    *_BROWSER, *_LEAVING,
]  # fmt: skip

# What this Chromium does not try behind a proxy, or only after minutes, or not in every run, whether or not the
# host is allowed. They run all the same, and must reach nothing.
UNTRIED = {
    *("dns-prefetch", "preconnect", "preconnect-tls", "link-header-preconnect"),
    *("speculation-prefetch", "speculation-prerender", "manifest", "favicon", "attribution"),
    *("webtransport", "worker-webtransport", "webrtc-stun", "webrtc-turn"),
    *("reporting", "nel", "related-origin", "fetchlater-now", "leave-fetchlater"),
    # Seen not to be tried on a busy machine: the popup can be gone before its script runs.
    "popup-websocket",
}
