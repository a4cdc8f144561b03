// The text that a person could see in this document, from character `offset` on, `limit` at the most:
// {text, next} with next null at the end, or null when the document is no longer at `address`.
// `this` is the document. Nothing of an element but its text is returned: no attributes, no field values.
function (address, offset, limit) {
  const document = this;
  const window = document.defaultView;
  const bare = (url) => url.split("#", 1)[0];
  if (!window || bare(document.location.href) !== bare(address)) return null;

  // The same set as text.py.
  const INVISIBLE = new RegExp(
    "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5" +
    "\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0" +
    "\\ufff0-\\ufffb\\u{13430}-\\u{1345f}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]",
    "gu",
  );
  const SKIPPED = new Set(
    ("SCRIPT STYLE NOSCRIPT TEMPLATE HEAD INPUT TEXTAREA SELECT OPTION OPTGROUP DATALIST METER PROGRESS " +
     "OBJECT EMBED IFRAME FRAME FRAMESET NOFRAMES CANVAS VIDEO AUDIO MAP RP METADATA DEFS DESC TITLE SYMBOL")
      .split(" "));
  const EDITABLE_ROLES = new Set(["textbox", "searchbox", "combobox", "spinbutton"]);
  const SECRET = new RegExp(
    "(^|[^a-z])(passw(or)?ds?|passwd|passphrase|passcode|pin ?code|otp|totp|mfa ?code|one ?time ?code|" +
    "secrets?|tokens?|(api|access|private|secret) ?keys?|credentials?|cvv|cvc|csrf|recovery ?codes?|" +
    "seed ?phrase|(current|new) ?password|cc ?(number|csc))([^a-z]|$)");
  // A class called `token` is syntax highlighting far more often than a token.
  const SECRET_CLASS = new RegExp(
    "(^|[^a-z])(passw(or)?ds?|passwd|passphrase|otp|(api|access|private|secret) ?keys?|" +
    "(access|auth|api|session|bearer) ?tokens?|credentials?|recovery ?codes?|seed ?phrase)([^a-z]|$)");
  const words = (text) =>
    text.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/[-_.:/]+/g, " ").toLowerCase();
  const attribute = (element, name) => element.getAttribute(name) || "";

  function withheld(element) {
    const name = element.localName.toUpperCase();
    if (SKIPPED.has(name) || element.isContentEditable) return true;
    if (EDITABLE_ROLES.has(attribute(element, "role").trim().toLowerCase())) return true;
    const names = ["id", "name", "autocomplete", "itemprop", "data-testid", "data-field"]
      .map((key) => attribute(element, key)).join(" ; ");
    if (names.length > 10 && SECRET.test(words(names))) return true;
    if (element.hasAttribute("data-sensitive") || element.hasAttribute("data-private")) return true;
    const classes = attribute(element, "class");
    return classes !== "" && SECRET_CLASS.test(words(classes));
  }

  // ---- what shows ----------------------------------------------------------------------------------
  const EVERYWHERE = { left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity };
  const meet = (a, b) => ({
    left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom),
  });
  const hasArea = (box) => box.right - box.left > 1 && box.bottom - box.top > 1;

  function colour(text) {
    const found = /^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/.exec(text);
    return found && { rgb: found.slice(1, 4).map(Number), alpha: found[4] === undefined ? 1 : Number(found[4]) };
  }
  function contrast(a, b) {
    const light = (rgb) => {
      const [r, g, b] = rgb.map((v) => {
        const part = v / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  }

  // What an element hands down to its children: opacity so far, the box that clips them, the background
  // that they are seen against (null: a picture, anything may be seen on it).
  function enter(element, style, above) {
    if (style.display === "none" || style.contentVisibility === "hidden") return null;
    if (style.display === "contents") return { ...above, style };
    let opacity = above.opacity * Number(style.opacity);
    for (const [, amount, percent] of style.filter.matchAll(/opacity\(([\d.]+)(%?)\)/g)) {
      opacity *= percent ? Number(amount) / 100 : Number(amount);
    }
    if (opacity < 0.1) return null;

    const box = element.getBoundingClientRect();
    const fixed = above.fixed || style.position === "fixed";
    let clip = style.position === "fixed" ? EVERYWHERE : above.clip;
    const cuts = (value) => value === "hidden" || value === "clip";
    const scrolls = (value) => value === "auto" || value === "scroll";
    const root = element === document.documentElement || element === document.body;
    if (!root && style.display !== "inline") {
      const [x, y] = [style.overflowX, style.overflowY];
      if ((cuts(x) || scrolls(x)) && box.width <= 1 && cuts(y)) return null;
      if ((cuts(y) || scrolls(y)) && box.height <= 1) return null;
      // What a scroll container holds can be scrolled to; what a clipping one cuts off cannot.
      if (cuts(x)) clip = meet(clip, { ...EVERYWHERE, left: box.left, right: box.right });
      if (cuts(y)) clip = meet(clip, { ...EVERYWHERE, top: box.top, bottom: box.bottom });
      if (scrolls(x) || scrolls(y)) clip = hasArea(meet(clip, box)) ? EVERYWHERE : clip;
    }
    if (style.position === "absolute" || style.position === "fixed") {
      const cut = /^rect\((-?[\d.]+)px, (-?[\d.]+)px, (-?[\d.]+)px, (-?[\d.]+)px\)$/.exec(style.clip);
      if (cut && (Number(cut[2]) - Number(cut[4]) <= 1 || Number(cut[3]) - Number(cut[1]) <= 1)) return null;
    }
    if (clippedAway(style.clipPath, box)) return null;

    let ground = above.ground;
    const own = colour(style.backgroundColor);
    if (style.backgroundImage !== "none") ground = null;
    else if (own && own.alpha > 0.9) ground = own.rgb;
    else if (!own || own.alpha > 0.1) ground = null;
    return { opacity, clip, ground, fixed, style };
  }

  function clippedAway(path, box) {
    const inset = /^inset\(([^)]*)\)$/.exec(path);
    if (inset) {
      const sides = inset[1].split(" round ")[0].trim().split(/\s+/);
      const [top, right = top, bottom = top, left = right] = sides;
      const share = (value, size) =>
        value.endsWith("%") ? parseFloat(value) / 100 : size ? parseFloat(value) / size : 0;
      return share(top, box.height) + share(bottom, box.height) >= 0.99 ||
        share(left, box.width) + share(right, box.width) >= 0.99;
    }
    return /^(circle|ellipse)\(0(px|%)?[ )]/.test(path) || /^polygon\((0(px|%)? 0(px|%)?(, )?)+\)$/.test(path);
  }

  function paints(state) {
    const style = state.style;
    if (style.visibility !== "visible" || parseFloat(style.fontSize) < 2) return false;
    const clipsBackground = style.webkitBackgroundClip === "text" || style.backgroundClip === "text";
    if (clipsBackground || style.textShadow !== "none") return true;
    const ink = colour(style.webkitTextFillColor) || colour(style.color);
    if (!ink) return true;
    if (ink.alpha < 0.1) return false;
    return state.ground === null || ink.alpha < 0.9 || contrast(ink.rgb, state.ground) >= 1.1;
  }

  const range = document.createRange();
  const [scrollX, scrollY] = [window.scrollX, window.scrollY];
  const view = { left: 0, top: 0, right: window.innerWidth, bottom: window.innerHeight };
  function shows(node, state) {
    if (!paints(state)) return false;
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      if (rect.width <= 0 || rect.height <= 0) continue;
      if (rect.right + scrollX <= 0 || rect.bottom + scrollY <= 0) continue;  // nobody can scroll there
      const seen = meet(rect, state.clip);
      if (seen.right <= seen.left || seen.bottom <= seen.top) continue;
      if (state.fixed && !hasArea(meet(seen, view))) continue;
      return true;
    }
    return false;
  }

  // ---- the text, and the window of it that was asked for ----------------------------------------------
  const out = [];
  let position = 0;  // in characters of the whole text
  let gap = "";  // white space that is owed before the next character
  let full = false;
  const stronger = { "": 0, " ": 1, "\t": 2, "\n": 3, "\n\n": 4 };
  const owe = (white) => { if (stronger[white] > stronger[gap]) gap = white; };
  function put(character) {
    if (position >= offset + limit) full = true;
    else if (position++ >= offset) out.push(character);
  }
  function say(text, preformatted) {
    const clean = text.toWellFormed().replace(INVISIBLE, "");
    for (const character of clean) {
      if (full) return;
      const white = character === " " || character === "\t" || character === "\n";
      if (white && !preformatted) owe(" ");
      else {
        if (gap && position > 0) for (const one of gap) put(one);
        gap = "";
        put(character);
      }
    }
  }

  const children = (node) => {
    if (node.shadowRoot) return node.shadowRoot.childNodes;
    if (node.localName === "slot" && node.assignedNodes) {
      const assigned = node.assignedNodes();
      if (assigned.length) return assigned;
    }
    return node.childNodes;
  };
  function walk(node, above) {
    if (full) return;
    if (node.nodeType === 3) {
      if (node.data.trim() === "") owe(" ");
      else if (shows(node, above)) say(node.data, /^(pre|break-spaces)/.test(above.style.whiteSpace));
      return;
    }
    if (node.nodeType !== 1 || withheld(node)) return;
    if (node.localName === "br") return owe("\n");
    const style = window.getComputedStyle(node);
    const state = enter(node, style, above);
    if (!state) return;
    const display = style.display;
    const edge = display === "table-cell" ? "\t" : node.localName === "p" ? "\n\n"
      : /^(inline|contents|ruby)/.test(display) ? "" : "\n";
    owe(edge);
    const closed = node.localName === "details" && !node.open;
    const summary = closed && [...node.children].find((child) => child.localName === "summary");
    for (const child of closed ? (summary ? [summary] : []) : children(node)) walk(child, state);
    owe(edge);
  }

  if (document.designMode === "on") return { text: "", next: null };
  const start = { opacity: 1, clip: EVERYWHERE, ground: [255, 255, 255], fixed: false, style: null };
  if (document.documentElement) walk(document.documentElement, start);
  return { text: out.join(""), next: full ? position : null };
}
