// What an element hands down to what is inside it: state.enter(element, style, above, add) -> state, or null when
// nothing in it can be seen. `add` is told what it paints itself.
// A state: {style, opacity, size (how much smaller things are drawn), turned, back (3D), blur, maps (filters'
// changes of colours), flow, abs, fix (what clips: {clip, scope}, for what is placed in the flow, absolutely and
// fixed), sc, ps, ground (see layers.js), item}.
(() => {
  const FAINT = 0.1;  // less than this cannot be read, whatever the colours
  const cuts = (value) => value === "hidden" || value === "clip";
  const scrolls = (value) => value === "auto" || value === "scroll";
  const NOWHERE = { left: 0, top: 0, right: 0, bottom: 0 };
  const [scrollWidth, scrollHeight, clientWidth, clientHeight, clientLeft, clientTop, scrollLeft, scrollTop] =
    ["scrollWidth", "scrollHeight", "clientWidth", "clientHeight", "clientLeft", "clientTop", "scrollLeft", "scrollTop"]
      .map((key) => dom.bound(Element, key));
  const offsetWidth = dom.bound(HTMLElement, "offsetWidth"), offsetHeight = dom.bound(HTMLElement, "offsetHeight");
  const matches = dom.matches;
  const complete = dom.bound(HTMLImageElement, "complete"), naturalWidth = dom.bound(HTMLImageElement, "naturalWidth");

  // Nothing but filters can be done to an inline box.
  const holdsFixed = (style, inline) => style.filter !== "none" || style.backdropFilter !== "none" || (!inline && (
    style.transform !== "none" || style.translate !== "none" || style.rotate !== "none" || style.scale !== "none" ||
    style.perspective !== "none" || /paint|layout|strict|content/.test(style.contain) ||
    /transform|filter|perspective|translate|rotate|scale/.test(style.willChange)));

  // ---- transforms -----------------------------------------------------------------------------------
  function own3d(style) {
    const { transform, rotate } = style;
    if (transform === "none" && rotate === "none") return null;
    let matrix = new DOMMatrix();
    if (rotate !== "none") {
      const words = rotate.split(" ");
      const angle = words.pop();
      const axis = { x: "1, 0, 0", y: "0, 1, 0", z: "0, 0, 1" }[words[0]] || words.join(", ") || "0, 0, 1";
      matrix = new DOMMatrix(`rotate3d(${axis}, ${angle})`);
    }
    return transform === "none" ? matrix : matrix.multiply(new DOMMatrix(transform));
  }
  // How much smaller it is drawn in the direction in which it shrinks most.
  function shrinks(m) {
    const squares = m.m11 ** 2 + m.m12 ** 2 + m.m21 ** 2 + m.m22 ** 2;
    const determinant = m.m11 * m.m22 - m.m12 * m.m21;
    return Math.sqrt(Math.max(0, (squares - Math.sqrt(Math.max(0, squares ** 2 - 4 * determinant ** 2))) / 2));
  }
  const scaled = (style) =>
    style.scale === "none" ? 1 : Math.min(...style.scale.split(" ").slice(0, 2).map((v) => Math.abs(Number(v))));

  // ---- masks ----------------------------------------------------------------------------------------
  function maskedAway(style) {
    const image = style.maskImage;
    if (!image || image === "none") return false;
    // A picture: what it leaves cannot be known here.
    if (/url\(|image-set|element\(/.test(image)) return true;
    if (/^(?:0(?:px|%)?(?: |$)|[^ ]+ 0(?:px|%)?$)/.test(style.maskSize || "")) return true;
    return !colours.within(image).some((colour) => colour[3] >= FAINT);
  }

  // ---- clipping and scrolling -----------------------------------------------------------------------
  function inside(element, style, box, flow) {
    const [x, y] = [style.overflowX, style.overflowY];
    const contained = /paint|strict|content/.test(style.contain) ? "clip" : "";
    const cutX = cuts(x) || contained, cutY = cuts(y) || contained;
    if (!cutX && !cutY && !scrolls(x) && !scrolls(y)) return flow;
    const html = dom.name(element) !== "";
    const wide = (html && offsetWidth(element) && (box.right - box.left) / offsetWidth(element)) || 1;
    const high = (html && offsetHeight(element) && (box.bottom - box.top) / offsetHeight(element)) || 1;
    const left = box.left + clientLeft(element) * wide, top = box.top + clientTop(element) * high;
    const padding = {
      left, top, right: left + clientWidth(element) * wide, bottom: top + clientHeight(element) * high,
    };
    const moves = (scrolls(x) && scrollWidth(element) > clientWidth(element)) ||
      (scrolls(y) && scrollHeight(element) > clientHeight(element));
    if (!moves) {
      const clip = { ...boxes.EVERYWHERE };
      if (cutX || scrolls(x)) Object.assign(clip, { left: padding.left, right: padding.right });
      if (cutY || scrolls(y)) Object.assign(clip, { top: padding.top, bottom: padding.bottom });
      return { clip: boxes.meet(flow.clip, clip), scope: flow.scope };
    }
    const seen = boxes.meet(flow.clip, padding);
    if (!boxes.hasArea(seen)) return { clip: NOWHERE, scope: flow.scope };
    // What can be scrolled to: nothing before the start, which is on the right where text runs that way.
    const all = { ...padding };
    if (scrolls(x)) {
      const back = style.direction === "rtl" || /^(vertical|sideways)-rl/.test(style.writingMode);
      const start = padding.left - scrollLeft(element) * wide;
      const extra = (scrollWidth(element) - clientWidth(element)) * wide;
      all.left = back ? start - extra : start;
      all.right = all.left + scrollWidth(element) * wide;
    }
    if (scrolls(y)) {
      all.top = padding.top - scrollTop(element) * high;
      all.bottom = all.top + scrollHeight(element) * high;
    }
    return { clip: all, scope: { rect: seen, parent: flow.scope } };
  }

  // Content that Chromium has put off drawing has a place, but its box no height yet: of what is around, only
  // what is under all of it (`of`) counts.
  function put(element, box, flow, window) {
    if (box.bottom > 0 && box.top < window.innerHeight && boxes.hasArea(box)) return flow;
    const reached = box.bottom >= flow.clip.top && box.top <= flow.clip.bottom;
    if (!reached) return { clip: NOWHERE, scope: flow.scope };
    const across = { left: Math.max(flow.clip.left, box.left), right: Math.min(flow.clip.right, box.right) };
    return { clip: { ...boxes.EVERYWHERE, ...across }, scope: { rect: box, parent: flow.scope, of: element } };
  }

  // ---- what it paints itself ------------------------------------------------------------------------
  const PICTURES = new Set(["img", "video"]);
  function paint(element, name, style, box, state, flow, add) {
    const background = backdrop(style);
    const picture = PICTURES.has(name) || name === "canvas";
    if ((!background && !picture) || style.visibility !== "visible" || !boxes.hasArea(box)) return;
    const rect = boxes.meet(box, flow.clip);
    if (!boxes.hasArea(rect)) return;
    const place = { rect, order: layers.ground(state), scope: flow.scope, element };
    const solid = state.opacity > 0.95 && !state.turned;
    if (background) {
      add({ ...place, colour: background.colour && tint(background.colour, state), opaque: solid && background.opaque });
    }
    if (picture && (name !== "img" || (complete(element) && naturalWidth(element) > 0))) {
      add({ ...place, colour: null, opaque: solid && name !== "canvas" });
    }
  }
  const tint = (colour, state) => [...colours.apply(state.maps, colour.slice(0, 3)), colour[3] * state.opacity];
  const CLEAR = "rgba(0, 0, 0, 0)";
  // What a background paints: a colour, or null for a picture; or nothing.
  function backdrop(style) {
    const { backgroundColor, backgroundImage } = style;
    if (backgroundColor === CLEAR && backgroundImage === "none") return null;
    if (style.backgroundClip === "text") return null;
    const colour = colours.rgba(backgroundColor) || [0, 0, 0, 0];
    if (backgroundImage !== "none") {
      const shades = textGround(style);
      const full = shades !== null && shades.length > 0 && shades.every((one) => one[3] > 0.95);
      // A gradient from a colour to itself is that colour.
      const plain = full && shades.every((one) => !colours.differ(one.slice(0, 3), shades[0].slice(0, 3)));
      return { colour: plain ? shades[0] : null, opaque: full || colour[3] > 0.95 };
    }
    return colour[3] < 0.02 ? null : { colour, opaque: colour[3] > 0.95 };
  }
  // A background that only shows through the letters: its colours, or null for a picture.
  function textGround(style) {
    if (style.backgroundImage === "none") return [colours.rgba(style.backgroundColor) || [0, 0, 0, 0]];
    return /url\(|image-set|element\(/.test(style.backgroundImage) ? null : colours.within(style.backgroundImage);
  }
  // A pseudo-element that is laid over the element, or under its text.
  function pseudo(element, window, style, box, state, flow, add) {
    if (style.position === "static") return;  // its place would be another's
    for (const which of ["::before", "::after"]) {
      const drawn = window.getComputedStyle(element, which);
      if (drawn.content === "none" || drawn.content === "normal" || drawn.display === "none") continue;
      if (drawn.position !== "absolute" && drawn.position !== "fixed") continue;
      const background = backdrop(drawn);
      if (!background || drawn.visibility !== "visible") continue;
      const [left, top, width, height] = ["left", "top", "width", "height"].map((key) => parseFloat(drawn[key]));
      if ([left, top, width, height].some(Number.isNaN)) continue;
      const x = box.left + clientLeft(element) + left, y = box.top + clientTop(element) + top;
      const traits = { holds: false, item: false, top: false, faded: Number(drawn.opacity) < 1 };
      const solid = state.opacity * Number(drawn.opacity) > 0.95 && !state.turned && drawn.transform === "none";
      add({
        rect: boxes.meet({ left: x, top: y, right: x + width, bottom: y + height }, flow.clip),
        order: layers.ground(layers.enter(drawn, state, traits)), scope: flow.scope, element: null,
        colour: background.colour && tint(background.colour, { maps: state.maps, opacity: state.opacity * Number(drawn.opacity) }),
        opaque: solid && background.opaque,
      });
    }
  }

  function enter(element, name, style, above, window, add) {
    const { display } = style;
    if (display === "none" || style.contentVisibility === "hidden") return null;
    if (display === "contents") return { ...above, style };
    const root = !above.style, inline = display === "inline";
    const filtered = colours.filter(style.filter);
    const opacity = above.opacity * Number(style.opacity) * filtered.opacity;
    // What an SVG filter leaves cannot be known; on a whole page it is a person's colour scheme.
    if (opacity < FAINT || (filtered.unknown && !root) || maskedAway(style)) return null;

    const box = dom.rect(element);
    const matrix = inline ? null : own3d(style);
    const solid = above.back && (matrix ? above.back.multiply(matrix) : above.back);
    const total = solid || matrix;
    if (total && total.m33 < 0 && style.backfaceVisibility === "hidden") return null;

    const base = style.position === "absolute" ? above.abs : style.position === "fixed" ? above.fix : above.flow;
    const holds = holdsFixed(style, inline);
    const top = (name === "dialog" || dom.has(element, "popover")) && matches(element, ":modal, :popover-open");
    const state = {
      style, opacity,
      size: above.size * (matrix ? shrinks(matrix) : 1) * (inline ? 1 : scaled(style)) * (Number(style.zoom) || 1),
      turned: above.turned || Boolean(matrix && (Math.abs(matrix.m12) > 1e-3 || Math.abs(matrix.m21) > 1e-3 || !matrix.is2D)),
      back: !inline && style.transformStyle === "preserve-3d" ? total || new DOMMatrix() : null,
      blur: Math.max(above.blur, filtered.blur),
      maps: filtered.maps.length ? [...filtered.maps, ...above.maps] : above.maps,
      item: /flex|grid/.test(display),
      roots: above.roots,
      inks: style.backgroundClip === "text" ? textGround(style) : above.inks,
      ...layers.enter(style, above, {
        holds, item: above.item, top, faded: Number(style.opacity) < 1,
      }),
    };
    let own = base, fix = above.fix, abs = above.abs;
    if (style.clipPath !== "none" || style.clip !== "auto") {
      const left = boxes.region(style, box);
      if (!left) return null;
      const cut = (frame) => ({ clip: boxes.meet(frame.clip, left), scope: frame.scope });
      own = cut(own);
      fix = cut(fix);
      abs = cut(abs);
    }
    // What the document's own elements clip is the view, and what they paint is the canvas: visible.js knows both.
    const viewport = element === above.roots.html || element === above.roots.body;
    if (element !== above.roots.html && element !== above.roots.painted) {
      paint(element, name, style, box, state, own, add);
    }
    state.outer = own;  // what clips the element itself
    const clips = !viewport && !inline;
    state.flow = clips ? inside(element, style, box, own) : own;
    if (style.contentVisibility === "auto") state.flow = put(element, box, state.flow, window);
    state.abs = holds || style.position !== "static" ? state.flow : abs;
    state.fix = holds ? state.flow : fix;
    if (clips) pseudo(element, window, style, box, state, state.flow, add);
    return state;
  }
  return { enter, backdrop, tint };
})()
