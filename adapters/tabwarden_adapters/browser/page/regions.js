// What must not be seen of a document as it is drawn now: regions(document, options) -> {regions, things, texts,
// roots, trouble}. Boxes are [left, top, right, bottom] in CSS pixels of the tab's own viewport. options: {closed: a
// Map from element to its closed shadow tree, texts: whether the texts that show are wanted, until}.
//
// `things`: how many elements and frames `regions` is for. `texts`: {text, regions}, one for each block.
// `roots`: the trees that were walked. `trouble`: "", "large" (too much to look at) or "unproved": something that
// must not be seen is drawn where a box does not tell.
//
// Too much is masked rather than too little: what is covered still counts. Needs dom.js,
// sensitive.js and clean.js.
(() => {
  const NODES = 60_000, DEPTH = 1_000, BOXES = 4_000, FRAMES = 50, FRAME_DEPTH = 4, CHARACTERS = 100_000;
  const MARGIN = 2;  // pixels around each box: anti-aliasing, outlines
  const INK = 0.35;  // letters reach out of their line's box by so many parts of its height
  const BLUR = 3;  // a blur is seen as far as three times its radius
  const CHUNK = 500;  // characters of a long text that are looked at together
  // What inspect tells of fields, and no more.
  const VALUE = 1_000, OPTION = 128, EDITED = 200;

  // Whose pixels cannot be looked into.
  const OPAQUE = new Set("video canvas object embed applet fencedframe portal model".split(" "));
  const FRAME = {
    iframe: dom.bound(HTMLIFrameElement, "contentDocument"), frame: dom.bound(HTMLFrameElement, "contentDocument"),
  };
  const values = {
    input: dom.bound(HTMLInputElement, "value"), textarea: dom.bound(HTMLTextAreaElement, "value"),
  };
  const selectedOptions = dom.bound(HTMLSelectElement, "selectedOptions");
  const optionValue = dom.bound(HTMLOptionElement, "value"), optionLabel = dom.bound(HTMLOptionElement, "label");
  const rectsOf = dom.bound(Element, "getClientRects");
  const rangeRects = dom.bound(Range, "getClientRects");
  const data = dom.bound(CharacterData, "data");
  const offsetWidth = dom.bound(HTMLElement, "offsetWidth"), offsetHeight = dom.bound(HTMLElement, "offsetHeight");
  const [clientLeft, clientTop, clientWidth, clientHeight] =
    ["clientLeft", "clientTop", "clientWidth", "clientHeight"].map((key) => dom.bound(Element, key));
  const checkVisibility = dom.bound(Element, "checkVisibility");
  const assignedSlot = { 1: dom.bound(Element, "assignedSlot"), 3: dom.bound(Text, "assignedSlot") };
  const assignedNodes = dom.bound(HTMLSlotElement, "assignedNodes");
  const designMode = dom.bound(Document, "designMode");

  const pixels = (css) => (css.match(/-?[\d.]+px/g) || []).map((one) => Math.abs(parseFloat(one)));
  const lengths = (css) => pixels(css).reduce((sum, one) => sum + one, 0);
  // How far a shadow reaches: its offsets and its blur.
  function shadow(css) {
    const [x = 0, y = 0, blur = 0] = pixels(css);
    return Math.max(x, y) + BLUR * blur;
  }
  const shadows = (css) => (css === "none" ? 0 : Math.max(...css.split(/,(?![^(]*\))/).map(shadow)));
  function filtered(css) {
    let reach = 0;
    for (const [, name, inside] of css.matchAll(/([a-z-]+)\(((?:[^()]|\([^()]*\))*)\)/g)) {
      reach += name === "drop-shadow" ? shadow(inside) : BLUR * lengths(inside);
    }
    return reach;
  }
  const CLIPS = new Set("block flow-root inline-block list-item flex inline-flex grid inline-grid table-cell".split(" "));
  const WORD = /[\p{L}\p{N}]/u;

  function regions(document, { closed, texts: wanted, until }) {
    const found = { regions: [], things: 0, texts: [], roots: [], trouble: "" };
    const window = dom.view(document);
    const view = { left: 0, top: 0, right: window.innerWidth, bottom: window.innerHeight };
    const backdrops = [];
    let [nodes, boxes, characters, frames] = [0, 0, 0, 0];
    const give = (trouble) => { found.trouble = found.trouble || trouble; };

    // ---- boxes ----------------------------------------------------------------------------------------
    // A box of a document, with a margin, as a box of the tab's viewport; null when nothing of it is in view.
    function place(box, margin, map) {
      const left = map.left + (box.left - margin) * map.x, right = map.left + (box.right + margin) * map.x;
      const top = map.top + (box.top - margin) * map.y, bottom = map.top + (box.bottom + margin) * map.y;
      const seen = [
        Math.max(left, map.clip.left), Math.max(top, map.clip.top),
        Math.min(right, map.clip.right), Math.min(bottom, map.clip.bottom),
      ];
      return seen[2] > seen[0] && seen[3] > seen[1] ? seen.map((one) => Math.round(one * 100) / 100) : null;
    }
    function mark(thing, box, margin, map) {
      const seen = place(box, margin, map);
      if (!seen) return;
      if (!thing.seen) found.things += 1;
      thing.seen = true;
      found.regions.push(seen);
      if ((boxes += 1) > BOXES) give("large");
    }
    const sized = (box) => box.width > 0 && box.height > 0;
    // How much larger an element is drawn than it is laid out.
    function enlarged(element) {
      if (dom.name(element) === "") return 1;
      const box = dom.rect(element), width = offsetWidth(element), height = offsetHeight(element);
      return width > 0 && height > 0 ? Math.max(1, box.width / width, box.height / height) : 1;
    }
    function ink(style, box) {
      const size = parseFloat(style.fontSize) || 0;
      const larger = size > 0 ? Math.max(1, box.height / (2 * size)) : 1;
      const around = shadows(style.textShadow) + lengths(style.webkitTextStrokeWidth);
      return INK * Math.max(size, box.height) + around * larger;
    }

    // ---- what must not be seen ------------------------------------------------------------------------
    const fits = (text, most) => text.length <= most && clean(text) === text;
    function beyondInspect(element, name) {
      if (name === "select") {
        return [...selectedOptions(element)].some((option) =>
          sensitive(option) !== "" || !fits(optionValue(option), OPTION) || optionLabel(option).length > OPTION);
      }
      if (!values[name]) return false;
      // What is only proposed to a person (autofill) is drawn, but is no value yet.
      if (dom.matches(element, ":autofill")) return true;
      return !fits(values[name](element), VALUE);
    }
    const edited = (element, above) =>
      dom.editable(element) && !above.edited && dom.textContent(element).length > EDITED;
    const masked = (element, name, style, above) =>
      OPAQUE.has(name) || sensitive(element, style) !== "" || beyondInspect(element, name) || edited(element, above);

    // Where drawing goes beyond boxes: filters and reflections move pixels.
    function displace(element, style, inner) {
      if (style.filter !== "none") {
        if (style.filter.includes("url(")) inner.lost = true;
        inner.smear += filtered(style.filter) * enlarged(element);
      }
      if (style.webkitBoxReflect && style.webkitBoxReflect !== "none") inner.lost = true;
      if (style.backdropFilter !== "none") backdrops.push([element, inner.map]);
    }
    function overflowing(name, style, inner) {
      if (!OPAQUE.has(name) && !FRAME[name]) return 0;
      if (style.overflowX === "visible" && (name === "video" || name === "canvas")) inner.lost = true;
      return lengths(style.overflowClipMargin || "");
    }

    // A box that clips what is in it. Only where that is sure: what is placed absolutely may be clipped by less.
    function clipped(element, name, style, inner) {
      const { map } = inner;
      if (/absolute|fixed/.test(style.position)) inner.map = { ...map, clip: map.frame };
      if (!name || name === "html" || name === "body" || !CLIPS.has(style.display)) return;
      if (style.overflowX === "visible" || style.overflowY === "visible") return;
      const around = MARGIN + inner.smear + lengths(style.overflowClipMargin || "") * enlarged(element);
      const box = place(dom.rect(element), around, inner.map);
      const [left, top, right, bottom] = box || [0, 0, 0, 0];
      inner.inside = { ...inner.map, clip: { left, top, right, bottom } };
    }

    // ---- text -----------------------------------------------------------------------------------------
    function* parts(text) {
      const all = data(text);
      if (all.length <= 4 * CHUNK) yield [0, all.length];
      else for (let at = 0; at < all.length; at += CHUNK) yield [at, Math.min(all.length, at + CHUNK)];
    }
    function ofText(text, above, range) {
      const { style, thing, map, smear } = above;
      if (style.visibility !== "visible" || !/\S/.test(data(text))) return;
      if (!thing && !wanted) return;
      let [last, owed] = ["", false];
      for (const [from, to] of parts(text)) {
        range.setStart(text, from);
        range.setEnd(text, to);
        const shown = [];
        for (const box of rangeRects(range)) {
          if (!sized(box)) continue;
          const margin = MARGIN + smear + ink(style, box);
          if (thing) {
            mark(thing, box, margin, map);
            if (above.lost && thing.seen) give("unproved");
          } else {
            const seen = place(box, margin, map);
            if (seen) shown.push(seen);
          }
        }
        const said = data(text).slice(from, to);
        // What begins or goes on out of view belongs to what shows.
        if (shown.length && !owed) say(above, last, []);
        if (shown.length || owed) say(above, said, shown);
        owed = shown.length > 0;
        last = said;
        if (late()) return;
      }
    }
    function say(above, text, seen) {
      const { block } = above;
      if (!text) return;
      block.text += text;
      block.lost = block.lost || above.lost;
      for (const one of seen) block.regions.push(one);
      if ((characters += text.length) > CHARACTERS || (boxes += seen.length) > BOXES) give("large");
    }
    // Fields: what is typed, proposed or written on them.
    function ofField(element, name, above) {
      const seen = wanted && place(dom.rect(element), MARGIN, above.map);
      if (!seen) return;
      const said = name === "select" ? [...selectedOptions(element)].map((option) => optionLabel(option)).join(" ")
        : [values[name](element), dom.attribute(element, "placeholder")].join(" ").trim();
      if (said) found.texts.push({ text: said, regions: [seen] });
      if ((characters += said.length) > CHARACTERS) give("large");
    }
    // Text that style sheets put in. Where it is, only the element's box tells.
    function ofPseudo(element, above) {
      const { thing, map, smear } = above;
      if (!thing && !wanted) return;
      for (const which of ["::before", "::after", "::marker"]) {
        const drawn = dom.view(dom.ownerDocument(element)).getComputedStyle(element, which);
        if (drawn.content === "none" || drawn.content === "normal" || drawn.display === "none") continue;
        const said = [...drawn.content.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, one]) => one).join("");
        if (!WORD.test(said) && !(thing && /url\(/.test(drawn.content))) continue;
        const away = (which !== "::marker" && /absolute|fixed/.test(drawn.position)) || drawn.float !== "none" ||
          drawn.transform !== "none";
        const boxesOf = [...rectsOf(element)].map((box) => [box, MARGIN + smear + ink(drawn, box)]);
        if (thing) {
          for (const [box, margin] of boxesOf) mark(thing, box, margin, map);
          if (away) give("unproved");
        } else {
          const seen = boxesOf.map(([box, margin]) => place(box, margin, map)).filter(Boolean);
          if (seen.length) say(away ? { ...above, lost: true } : above, ` ${said} `, seen);
        }
      }
    }

    // ---- walking --------------------------------------------------------------------------------------
    const late = () => {
      if (performance.now() > until) give("large");
      return found.trouble !== "";
    };
    function children(element, name) {
      const shadow = dom.shadowRoot(element) || closed.get(element);
      if (shadow) {
        found.roots.push(shadow);
        return dom.childNodes(shadow);
      }
      if (name === "slot") {
        const assigned = assignedNodes(element);
        if (assigned.length) return assigned;
      }
      return dom.childNodes(element);
    }
    function walk(node, above, level) {
      nodes += 1;
      if (nodes > NODES || level > DEPTH) give("large");
      if (found.trouble || ((nodes & 255) === 0 && late())) return;
      const type = dom.type(node);
      if (type === 3 && above.style) ofText(node, above, above.range);
      if (type !== 1) return;
      const name = dom.name(node), style = above.window.getComputedStyle(node);
      if (style.display === "none" || style.display === "" || Number(style.opacity) === 0) return;
      const inner = { ...above, style };
      if (!/^(inline|contents|ruby)/.test(style.display) || style.display === "inline-block") {
        inner.block = { text: "", regions: [], lost: false };
      }
      displace(node, style, inner);
      inner.inside = null;
      clipped(node, name, style, inner);
      if (!above.thing && (masked(node, name, style, above) || (FRAME[name] && !reachable(node, name, inner)))) {
        inner.thing = { seen: false };
      }
      inner.edited = above.edited || dom.editable(node);
      const shows = style.visibility === "visible";
      if (shows && inner.thing && style.display !== "contents") {
        const margin = MARGIN + inner.smear + overflowing(name, style, inner) +
          (name === "" ? lengths(style.strokeWidth || "") : 0);
        for (const box of rectsOf(node)) if (sized(box)) mark(inner.thing, box, margin, inner.map);
        if (inner.lost && inner.thing.seen) give("unproved");
      }
      if (shows) ofPseudo(node, inner);
      if (shows && !inner.thing && (values[name] || name === "select")) ofField(node, name, inner);
      if (style.contentVisibility !== "hidden") {
        if (inner.inside) inner.map = inner.inside;
        if (FRAME[name]) {
          if (!inner.thing && shows) enter(node, name, inner);
        } else if (name !== "textarea" && (name !== "select" || inner.thing || dom.has(node, "multiple") || dom.has(node, "size"))) {
          const shut = name === "details" && !dom.has(node, "open");
          for (const child of children(node, name)) {
            if (shut && dom.type(child) === 1 && !checkVisibility(child)) continue;
            walk(child, inner, level + 1);
            if (found.trouble) return;
          }
        }
      }
      if (inner.block !== above.block && inner.block.text) {
        found.texts.push(inner.block);
      }
    }

    // ---- frames ---------------------------------------------------------------------------------------
    function documentOf(element, name) {
      try {
        const there = FRAME[name](element);
        const inside = there && dom.view(there);
        return inside && inside.origin === window.origin ? there : null;
      } catch {
        return null;  // another origin
      }
    }
    // Can its document be looked into, and is it drawn so that boxes tell where?
    function reachable(element, name, inner) {
      const there = documentOf(element, name);
      if (!there || !dom.documentElement(there) || inner.depth >= FRAME_DEPTH || (frames += 1) > FRAMES) return false;
      return designMode(there) !== "on" && !turned(element, inner.window) && !inner.lost;
    }
    function up(node) {
      const slot = assignedSlot[dom.type(node)] && assignedSlot[dom.type(node)](node);
      const parent = slot || dom.parentNode(node);
      return parent && dom.type(parent) === 11 ? dom.host(parent) : parent;
    }
    function turned(element, inside) {
      for (let at = element; at && dom.type(at) === 1; at = up(at)) {
        const style = inside.getComputedStyle(at);
        const matrix = /^matrix\(([^)]*)\)$/.exec(style.transform);
        if (style.transform !== "none" && !matrix) return true;
        if (matrix && matrix[1].split(", ").slice(1, 3).some((one) => Math.abs(Number(one)) > 1e-6)) return true;
        if (style.rotate !== "none" || style.perspective !== "none" || style.offsetPath !== "none") return true;
        if (dom.name(at) === "") return true;  // inside SVG
      }
      return false;
    }
    function enter(element, name, outer) {
      const there = documentOf(element, name), inside = dom.view(there);
      const box = dom.rect(element), { map, style } = outer;
      const [x, y] = [box.width / offsetWidth(element), box.height / offsetHeight(element)];
      const padding = ["Left", "Top", "Right", "Bottom"].map((side) => parseFloat(style["padding" + side]) || 0);
      const left = box.left + (clientLeft(element) + padding[0]) * x;
      const top = box.top + (clientTop(element) + padding[1]) * y;
      const width = (clientWidth(element) - padding[0] - padding[2]) * x;
      const height = (clientHeight(element) - padding[1] - padding[3]) * y;
      const inView = place({ left, top, right: left + width, bottom: top + height }, 0, map);
      if (!inView || !(inside.innerWidth > 0) || !(inside.innerHeight > 0)) return;
      const clip = { left: inView[0], top: inView[1], right: inView[2], bottom: inView[3] };
      const within = {
        left: map.left + left * map.x, top: map.top + top * map.y,
        x: map.x * width / inside.innerWidth, y: map.y * height / inside.innerHeight, clip, frame: clip,
      };
      look(there, { ...outer, map: within, depth: outer.depth + 1, edited: false });
    }
    function look(there, above) {
      found.roots.push(there);
      const block = { text: "", regions: [], lost: false };
      const inner = { ...above, window: dom.view(there), style: null, block, range: there.createRange() };
      walk(dom.documentElement(there), inner, 0);
      if (block.text) found.texts.push(block);
    }

    const map = { left: 0, top: 0, x: 1, y: 1, clip: view, frame: view };
    if (designMode(document) === "on") give("unproved");
    look(document, { map, depth: 0, thing: null, smear: 0, lost: false, edited: false });

    // A backdrop filter draws what lies under it once more, somewhere in its own box.
    const meet = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
    const boxesOf = backdrops.map(([element, at]) => place(dom.rect(element), MARGIN, at)).filter(Boolean);
    for (let more = true; more;) {
      more = false;
      for (let i = boxesOf.length - 1; i >= 0; i -= 1) {
        if (!found.regions.some((one) => meet(one, boxesOf[i]))) continue;
        found.regions.push(...boxesOf.splice(i, 1));
        more = true;
      }
    }
    return found;
  }
  return regions;
})()
