// scroller(document, frames, x, y): scroll what lies at the middle of the viewport, by CSS pixels, as a wheel
// there would: the innermost box that can go that way, else what is around it. {denied}, or {moved} with
// false when all of it was at its end, or {kept: false} when the page put it back. Needs dom.js and reach.js.
(() => {
  const left = dom.bound(Element, "scrollLeft");
  const top = dom.bound(Element, "scrollTop");
  const size = {
    x: [dom.bound(Element, "scrollWidth"), dom.bound(Element, "clientWidth")],
    y: [dom.bound(Element, "scrollHeight"), dom.bound(Element, "clientHeight")],
  };
  const at = { x: left, y: top };
  const scrollBy = dom.bound(Element, "scrollBy");
  const scrolling = dom.bound(Document, "scrollingElement");

  function scrolls(element, axis) {
    const document = dom.ownerDocument(element);
    const key = axis === "x" ? "overflowX" : "overflowY";
    const own = reach.styleOf(element)[key];
    const root = dom.documentElement(document);
    if (element === scrolling(document)) {
      // The viewport takes its overflow from the root, or from the body when the root has none.
      const body = dom.body(document);
      const rooted = reach.styleOf(root)[key];
      const value = rooted === "visible" && body ? reach.styleOf(body)[key] : rooted;
      return value !== "hidden" && value !== "clip";
    }
    if (element === root) return false;
    return own === "auto" || own === "scroll";
  }
  function room(element, axis, by) {
    const [whole, shown] = size[axis].map((read) => read(element));
    const now = at[axis](element);
    if (reach.styleOf(element).direction === "rtl" && axis === "x") {
      return by < 0 ? whole - shown + now > 0.5 : now < -0.5;
    }
    return by < 0 ? now > 0.5 : whole - shown - now > 0.5;
  }
  function* chain(node) {
    for (let one = node; one; one = reach.up(one)) {
      yield one;
      // Quirks mode scrolls the body in the root's place; either stands for the viewport.
      const document = dom.ownerDocument(one);
      const main = scrolling(document);
      if (one === dom.documentElement(document) && main && main !== one) yield main;
    }
  }

  return async function scroller(document, frames, x, y) {
    const window = dom.view(document);
    const middle = reach.hit(document, window.innerWidth / 2, window.innerHeight / 2) || dom.documentElement(document);
    const moves = [];
    for (const [axis, by] of [["x", x], ["y", y]]) {
      if (!by || !middle) continue;
      for (const one of chain(middle)) {
        if (!scrolls(one, axis) || !room(one, axis, by)) continue;
        moves.push([one, axis, by, at[axis](one)]);
        break;
      }
    }
    for (const [one, axis, by] of moves) {
      scrollBy(one, { [axis === "x" ? "left" : "top"]: by, behavior: "instant" });
    }
    await frames();
    const kept = moves.every(([one, axis, by, from]) =>
      !dom.connected(one) || Math.sign(at[axis](one) - from) === Math.sign(by) || !room(one, axis, by));
    return { moved: moves.length > 0, kept };
  };
})()
