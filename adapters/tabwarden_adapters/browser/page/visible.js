// What a person could see of a document, now or by scrolling: visible(document, visit, options) -> a survey.
// Everything is measured first and judged afterwards: what comes late in a document can cover what came early.
// `visit(element, name, style, state, survey)` is called for each element that is not hidden as a whole; false
// says that nothing inside it is wanted. options: {until (performance.now()), base (for a frame's document)}.
//
// A survey: {items, cut, text(item), box(element, state), frame(item), late()}. Items, in the order of the composed tree:
// {text, state, ...}, {gap}, {frame, state, survey, origin}, and what `visit` pushes. `cut`: too much work.
(() => {
  const NODES = 400_000;  // 5 MB of markup are some 100,000
  const DEPTH = 1_000;  // the parser stops at 512
  const PIECES = 30_000;  // words looked at one by one, because their line is cut or covered in part
  const PARTS = [Infinity, 16_384, 512];  // characters of a text that are looked at together
  const FRAMES = 50, FRAME_DEPTH = 4;
  const SMALL = 3;  // pixels of font size as drawn: less cannot be read
  const ON_TOP = 0.4;  // letters drawn over each other: letter-spacing of minus so many parts of their size
  const BLURRED = 0.2;  // blur of so many parts of their size leaves no letters
  const UNSEEN = new Set(
    ("script style noscript template head object embed applet canvas video audio map area rp datalist title meter " +
     "progress iframe frame noframes select input textarea option optgroup metadata").split(" "));
  const UNSEEN_SVG = new Set(
    ("defs desc title symbol metadata clipPath mask pattern marker linearGradient radialGradient filter script style")
      .split(" "));
  const content = { iframe: dom.bound(HTMLIFrameElement, "contentDocument"), frame: dom.bound(HTMLFrameElement, "contentDocument") };
  const rects = dom.bound(Range, "getClientRects");
  const data = dom.bound(CharacterData, "data");
  const [SPACE, CELL, LINE, PARAGRAPH] = [" ", "\t", "\n", "\n\n"].map((gap) => ({ gap }));
  let frames = 0;

  function visible(document, visit, { until, base = null, depth = 0 }) {
    const window = dom.view(document);
    const html = dom.documentElement(document), body = dom.body(document);
    const items = [];
    const things = painted();
    let [nodes, pieces, cut] = [0, 0, false];
    const late = () => {
      cut = cut || performance.now() > until;
      return cut;
    };

    // ---- the view and the canvas ----------------------------------------------------------------------
    const styleOf = (element) => window.getComputedStyle(element);
    const view = { left: 0, top: 0, right: window.innerWidth, bottom: window.innerHeight };
    const style = html && styleOf(html), bodyStyle = body && styleOf(body);
    const propagates = Boolean(style && bodyStyle && style.overflowX === "visible" && style.overflowY === "visible");
    const rules = propagates ? bodyStyle : style;
    const VIEW = { rect: view, parent: null };
    function reach() {
      const place = { ...view };
      const shut = (value) => value === "hidden" || value === "clip" || (base && base.still);
      const back = style.direction === "rtl" || /^(vertical|sideways)-rl/.test(style.writingMode);
      const width = Math.max(view.right, dom.scrollWidth(html)), height = Math.max(view.bottom, dom.scrollHeight(html));
      if (!shut(rules.overflowX)) {
        place.left = (back ? view.right - width : 0) - window.scrollX;
        place.right = place.left + width;
      }
      if (!shut(rules.overflowY)) {
        place.top = -window.scrollY;
        place.bottom = place.top + height;
      }
      return place;
    }
    const whole = html ? reach() : view;
    const scrolls = boxes.area(whole) > boxes.area(view) + 1;
    const ROOT = scrolls ? { rect: view, parent: VIEW } : VIEW;
    const ownGround = style && (state.backdrop(style) || (bodyStyle && state.backdrop(bodyStyle)));
    const dark = style && /\bdark\b/.test(style.colorScheme) &&
      (!/\blight\b/.test(style.colorScheme) || window.matchMedia("(prefers-color-scheme: dark)").matches);
    let canvas = base ? null : paper(dark ? [18, 18, 18] : [255, 255, 255]);
    function paper(below) {
      if (!ownGround) return below;
      const top = ownGround.colour;
      if (!top || (!below && top[3] < 0.95)) return null;
      return below ? colours.over(top, top[3], below) : top.slice(0, 3);
    }
    const flow = { clip: whole, scope: ROOT };
    const start = {
      style: null, opacity: 1, size: 1, turned: false, back: null, blur: 0, maps: [], inks: undefined, item: false,
      flow, abs: flow, fix: { clip: view, scope: VIEW }, ...layers.root, ...(base ? base.state : {}),
      roots: { html, body: propagates ? body : null, painted: style && state.backdrop(style) ? null : body },
    };
    const survey = { items, text, box, frame, late, get cut() { return cut; } };

    // ---- measuring ------------------------------------------------------------------------------------
    function walk(node, above, level) {
      nodes += 1;
      if (nodes > NODES || level > DEPTH || ((nodes & 15) === 0 && late())) {
        cut = true;
        return;
      }
      const type = dom.type(node);
      if (type === 3) {
        if (above.style && /\S/.test(data(node))) items.push({ text: node, state: above, seq: layers.next(), order: null });
        else items.push(SPACE);
        return;
      }
      if (type !== 1) return;
      const name = dom.name(node);
      if (name === "br") {
        items.push(LINE);
        return;
      }
      const css = styleOf(node);
      const inner = state.enter(node, name, css, above, window, things.add);
      if (!inner) return;
      const edge = css.display === "table-cell" ? CELL : name === "p" ? PARAGRAPH
        : /^(inline|contents|ruby)/.test(css.display) ? null : LINE;
      if (edge) items.push(edge);
      const wanted = visit(node, name, css, inner, survey);
      if (wanted && (name === "iframe" || name === "frame")) enterFrame(node, name, inner);
      if (wanted && (name ? !UNSEEN.has(name) : !(dom.svg(node) && UNSEEN_SVG.has(dom.anyName(node))))) {
        const closed = name === "details" && !dom.has(node, "open");
        const summary = closed && [...dom.childNodes(node)].find((one) => dom.type(one) === 1 && dom.name(one) === "summary");
        for (const child of closed ? (summary ? [summary] : []) : dom.composedChildren(node)) {
          if (cut) break;
          walk(child, inner, level + 1);
        }
      }
      if (edge) items.push(edge);
    }

    function enterFrame(element, name, inner) {
      let there = null;
      try {
        there = content[name](element);
      } catch {
        there = null;  // another origin
      }
      const inside = there && dom.view(there);
      const same = inside && inside.origin === window.origin && frames < FRAMES && depth < FRAME_DEPTH;
      frames += 1;
      const still = /^(no|off|noscroll)$/i.test(dom.attribute(element, "scrolling"));
      const { opacity, size, blur, maps, turned } = inner;
      items.push({
        frame: element, state: inner, origin: same ? null : address(element),
        survey: same ? visible(there, visit, {
          until, depth: depth + 1, base: { still, state: { opacity, size, blur, maps, turned } },
        }) : null,
      });
    }
    // What a frame was told to load, as far as it can be told: nothing but the origin of an HTTP(S) address.
    function address(element) {
      try {
        const url = new URL(dom.attribute(element, "src"), document.baseURI);
        return /^https?:$/.test(url.protocol) && !dom.has(element, "srcdoc") ? url.origin : "frame";
      } catch {
        return "frame";
      }
    }

    // ---- judging --------------------------------------------------------------------------------------
    const legible = new WeakMap();
    // The colours in which a text is painted; null when one of them cannot be known; none when it cannot be read.
    function inks(item) {
      const { style: css } = item.state;
      if (css.visibility !== "visible" || item.state.opacity < 0.1) return [];
      const size = parseFloat(css.fontSize) * item.state.size;
      if (size < SMALL || parseFloat(css.letterSpacing) <= -ON_TOP * parseFloat(css.fontSize)) return [];
      if (item.state.blur > BLURRED * parseFloat(css.fontSize)) return [];
      const parent = dom.parentNode(item.text);
      const fill = dom.svg(parent) ? css.fill : css.webkitTextFillColor;
      const found = fill === "none" ? [] : [colours.rgba(fill) || null];
      if (dom.svg(parent) && css.stroke !== "none") found.push(colours.rgba(css.stroke) || null);
      if (parseFloat(css.webkitTextStrokeWidth) > 0) found.push(colours.rgba(css.webkitTextStrokeColor));
      for (const shadow of css.textShadow === "none" ? [] : css.textShadow.split(/,(?![^(]*\))/)) {
        const [x, y, blur] = (shadow.match(/-?[\d.]+px/g) || []).map(parseFloat);
        const near = Math.abs(x) < 3 * size && Math.abs(y) < 3 * size && blur < 0.4 * size;
        if (near) found.push(...colours.within(shadow));
      }
      if (item.state.inks === null) return null;
      if (item.state.inks) found.push(...item.state.inks);
      if (found.includes(null)) return null;
      return found.map((ink) => [...colours.apply(item.state.maps, ink.slice(0, 3)), ink[3] * item.state.opacity])
        .filter((ink) => ink[3] >= 0.1);
    }
    function stands(item, rect) {
      if (!legible.has(item)) legible.set(item, inks(item));
      const found = legible.get(item);
      if (found === null) return true;
      if (!found.length) return false;
      const ground = things.ground(rect, item.state.flow.scope, item.order, canvas);
      return !ground || found.some((ink) => colours.differ(colours.over(ink, ink[3], ground), ground));
    }
    // How much of a rectangle of a text shows: 0, 1, or something between.
    function judge(item, rect) {
      item.order = item.order || layers.text(item.state, item.seq);
      const whole = boxes.area(rect);
      const seen = boxes.meet(rect, item.state.flow.clip);
      const share = whole > 0 ? boxes.area(seen) / whole : 0;
      if (!boxes.hasArea(seen) || rect.right - rect.left < 0.5 || rect.bottom - rect.top < 0.5) return 0;
      const covered = things.over(seen, item.state.flow.scope, item.order);
      if (covered === 1 || !stands(item, seen)) return 0;
      return share > 0.98 && covered === 0 ? 1 : Math.min(share, covered ? 0.6 : 1, 0.97);
    }
    const range = document.createRange();
    const rectsOf = (node, from, to) => {
      range.setStart(node, from);
      range.setEnd(node, to);
      return rects(range);
    };
    // How much of a part of a text shows: 0, 1, or something between.
    function part(item, from, to) {
      let [some, every, drawn] = [false, true, false];
      const lines = rectsOf(item.text, from, to);
      for (let i = 0; i < lines.length && (every || !some); i += 1) {
        if ((i & 63) === 63 && late()) return 0;
        if (lines[i].width === 0 || lines[i].height === 0) continue;
        drawn = true;
        const seen = judge(item, lines[i]);
        some = some || seen > 0;
        every = every && seen === 1;
      }
      return some && drawn ? (every ? 1 : 0.5) : 0;
    }
    // What shows of a text node: all, or in ever smaller parts, word by word at last, what is neither cut off nor
    // covered. Large parts first, since each look at a long line takes long.
    function text(item) {
      const all = data(item.text);
      const split = (from, to, level) => {
        if (level === PARTS.length) return words(item, all.slice(from, to), from);
        let shown = "";
        for (let at = from; at < to && !cut;) {
          let end = Math.min(to, at + PARTS[level]);
          if (end < to && /[\udc00-\udfff]/.test(all[end])) end += 1;
          const seen = part(item, at, end);
          shown += seen === 1 ? all.slice(at, end) : seen ? split(at, end, level + 1) : " ";
          at = end;
        }
        return shown;
      };
      return split(0, all.length, 0);
    }
    function words(item, said, from) {
      let shown = "";
      for (const { 0: word, index } of said.matchAll(/[^\s]{1,12}\s*|\s+/gu)) {
        pieces += 1;
        if (pieces > PIECES || ((pieces & 63) === 0 && late())) {
          cut = true;
          return shown;
        }
        const length = word.trimEnd().length, at = from + index;
        const seen = length > 0 && [...rectsOf(item.text, at, at + length)].some((rect) => judge(item, rect) >= 0.5);
        shown += seen ? word : " ";
      }
      return shown;
    }
    // Does an element's own box show?
    function box(element, inner) {
      if (inner.style.visibility !== "visible" || inner.style.display === "contents") return false;
      const rect = dom.rect(element);
      const seen = boxes.meet(rect, inner.outer.clip);
      if (rect.width < 3 || rect.height < 3 || boxes.area(seen) < 0.2 * boxes.area(rect)) return false;
      const inside = (other) => {
        for (let at = other; at; at = dom.composedParent(at)) if (at === element) return true;
        return false;
      };
      return things.over(seen, inner.outer.scope, layers.ground(inner), inside) < 1;
    }
    // The survey of a frame that shows, or null.
    function frame(item) {
      if (!box(item.frame, item.state)) return null;
      const { outer } = item.state;
      const rect = boxes.meet(dom.rect(item.frame), outer.clip);
      const own = state.backdrop(item.state.style);
      const below = own && own.opaque ? own.colour && own.colour.slice(0, 3)
        : things.ground(rect, outer.scope, layers.ground(item.state), canvas);
      if (item.survey) item.survey.lay(below);
      return item;
    }
    survey.lay = (below) => { canvas = paper(below); };
    if (html) walk(html, start, 0);
    return survey;
  }
  return visible;
})()
