"""An HTML page that stands alone: no script, nothing to fetch, and a policy (CSP) under which a browser would
do neither. It is built as a tree, so that every text is escaped by the serializer."""

import base64
import hashlib
from xml.etree.ElementTree import Element, SubElement, tostring


def blank_page(title: str, style: str) -> tuple[Element, Element]:
    """The document, and its body to be filled. `style` is the only one that a browser will apply."""
    html = Element("html", lang="en")
    head = SubElement(html, "head")
    SubElement(head, "meta", charset="utf-8")
    SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": _policy(style)})
    SubElement(head, "meta", name="referrer", content="no-referrer")
    SubElement(head, "meta", name="viewport", content="width=device-width")
    add_text(head, "title", title)
    add_text(head, "style", style)
    return html, SubElement(html, "body")


def add_text(parent: Element, tag: str, text: str) -> Element:
    """A new element with nothing but this text in it."""
    element = SubElement(parent, tag)
    element.text = text
    return element


def as_document(html: Element) -> str:
    """The whole page."""
    return "<!DOCTYPE html>\n" + tostring(html, encoding="unicode", method="html") + "\n"


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
