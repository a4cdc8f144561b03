// Where an element is and what a pointer would meet there, through slots, open shadow trees and frames of this
// origin. Points and boxes are in CSS pixels of the tab's own viewport. Needs dom.js.
(() => {
  const rectsOf = dom.bound(Element, "getClientRects");
  const hitIn = { 9: dom.bound(Document, "elementFromPoint"), 11: dom.bound(ShadowRoot, "elementFromPoint") };
  const framed = {
    iframe: dom.bound(HTMLIFrameElement, "contentDocument"), frame: dom.bound(HTMLFrameElement, "contentDocument"),
  };
  const offsetWidth = dom.bound(HTMLElement, "offsetWidth");
  const offsetHeight = dom.bound(HTMLElement, "offsetHeight");
  const clientLeft = dom.bound(Element, "clientLeft");
  const clientTop = dom.bound(Element, "clientTop");
  const slotOf = { 1: dom.bound(Element, "assignedSlot"), 3: dom.bound(Text, "assignedSlot") };
  const control = dom.bound(HTMLLabelElement, "control");
  const scrollIntoView = dom.bound(Element, "scrollIntoView");

  const viewOf = (node) => dom.view(dom.type(node) === 9 ? node : dom.ownerDocument(node));
  const styleOf = (element) => viewOf(element).getComputedStyle(element);
  const contentOf = (element) => (framed[dom.name(element)] ? framed[dom.name(element)](element) : null);

  // What `node` is drawn inside, or null at the top. Unlike dom.composedParent it leaves frames, and it asks
  // nothing of classes, which are others in another frame.
  function up(node) {
    const slot = slotOf[dom.type(node)];
    const parent = (slot && slot(node)) || dom.parentNode(node);
    if (!parent) return null;
    if (dom.type(parent) === 11) return dom.host(parent);
    if (dom.type(parent) === 9) return dom.view(parent) ? dom.view(parent).frameElement : null;
    return parent;
  }

  // The frame's content box: where it begins in its parent's viewport and how it is scaled there.
  function inside(frame) {
    const [box, style] = [dom.rect(frame), styleOf(frame)];
    const [scaleX, scaleY] = [box.width / offsetWidth(frame), box.height / offsetHeight(frame)];
    return {
      left: box.left + (clientLeft(frame) + parseFloat(style.paddingLeft)) * scaleX,
      top: box.top + (clientTop(frame) + parseFloat(style.paddingTop)) * scaleY,
      scaleX, scaleY,
    };
  }
  // A turned frame cannot be reckoned with by boxes.
  function turned(frame) {
    for (let at = frame; at; at = up(at)) {
      const style = styleOf(at);
      const matrix = /^matrix\(([^)]*)\)$/.exec(style.transform);
      if (style.transform !== "none" && !matrix) return true;
      if (matrix && matrix[1].split(", ").slice(1, 3).some((part) => Math.abs(Number(part)) > 1e-6)) return true;
      if (style.rotate !== "none") return true;
    }
    return false;
  }

  const framesAround = (element) => {
    const frames = [];
    for (let view = viewOf(element); view && view.frameElement; view = viewOf(view.frameElement)) {
      frames.unshift(view.frameElement);
    }
    return frames;
  };
  const windowsAround = (element) => [...framesAround(element).map(viewOf), viewOf(element)];

  // The boxes of an element that show in the viewport, cut by it and by the frames around.
  function boxes(element) {
    const frames = framesAround(element);
    const views = windowsAround(element);
    const shown = [];
    for (const rect of [...rectsOf(element)].slice(0, 64)) {
      let box = { left: rect.left, top: rect.top, right: rect.right, bottom: rect.bottom };
      for (let depth = views.length - 1; depth >= 0; depth -= 1) {
        const root = dom.documentElement(views[depth].document);
        const [width, height] = [views[depth].innerWidth, views[depth].innerHeight];
        if (!root) return [];
        box = { left: Math.max(box.left, 0), top: Math.max(box.top, 0),
          right: Math.min(box.right, width), bottom: Math.min(box.bottom, height) };
        if (depth > 0) {
          const at = inside(frames[depth - 1]);
          box = { left: at.left + box.left * at.scaleX, top: at.top + box.top * at.scaleY,
            right: at.left + box.right * at.scaleX, bottom: at.top + box.bottom * at.scaleY };
        }
      }
      if (box.right - box.left > 1 && box.bottom - box.top > 1) shown.push(box);
    }
    return shown;
  }

  // Points to try on an element: the middle of its first boxes, then others, for when the middle is covered.
  const SHARES = [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75], [0.1, 0.5], [0.9, 0.5],
    [0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]];
  function points(element) {
    const found = [];
    for (const box of boxes(element).slice(0, 4)) {
      for (const [x, y] of SHARES) {
        found.push({ x: box.left + (box.right - box.left) * x, y: box.top + (box.bottom - box.top) * y });
      }
    }
    return found;
  }

  // The innermost element at a point of `document`, the tab's own.
  function hit(document, x, y) {
    let [root, found] = [document, null];
    for (let depth = 0; depth < 64; depth += 1) {
      const next = hitIn[dom.type(root)](root, x, y);
      // A shadow tree answers with what is around it when nothing of its own is there.
      if (!next || next === found || dom.root(next) !== root) return found;
      found = next;
      const content = contentOf(found);
      if (dom.shadowRoot(found)) root = dom.shadowRoot(found);
      else if (!content || turned(found)) return found;
      else {
        const at = inside(found);
        [x, y, root] = [(x - at.left) / at.scaleX, (y - at.top) / at.scaleY, content];
      }
    }
    return found;
  }

  const ROLES = new Set(("button link checkbox switch radio tab menuitem menuitemcheckbox menuitemradio option " +
    "combobox textbox searchbox slider spinbutton").split(" "));
  const CLICKED = new Set("button input select textarea option label summary iframe frame object embed".split(" "));
  // What would take a click for itself.
  function takes(element) {
    const name = dom.name(element);
    if (CLICKED.has(name) || ROLES.has(dom.attribute(element, "role").trim().toLowerCase())) return true;
    if (dom.anyName(element) === "a" || name === "area") return true;
    if (name === "video" || name === "audio") return dom.has(element, "controls");
    return false;
  }
  const editingHost = (element) => {
    const parent = dom.editable(element) ? up(element) : null;
    return dom.editable(element) && !(parent && dom.editable(parent));
  };
  // Would a click on `node` be one on `target`? Not when something between them takes it.
  function lands(node, target) {
    const labelled = dom.name(target) === "label" ? control(target) : null;
    const editable = dom.editable(target);  // a link in text that is edited is text
    for (let at = node; at; at = up(at)) {
      if (at === target) return true;
      if (at === labelled || (editable && dom.editable(at))) continue;
      if (takes(at) || editingHost(at)) return false;
    }
    return false;
  }

  return {
    up, viewOf, styleOf, framesAround, windowsAround, boxes, points, hit, lands, editingHost, contentOf, control,
    turned, scrollIntoView,
  };
})()
