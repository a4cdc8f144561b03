// The things that are painted, found by place: painted(view) -> {add, over, ground}.
// A thing: {rect, order, colour: [r, g, b, alpha] or null for a picture, opaque, scope, element}.
// `scope` is what scrolls it: {rect: where it can be seen, parent}. Things of one scope keep their places to
// each other; of something in a scope around, what matters is whether all of the scroller is under it.
(() => {
  const BAND = 128;  // pixels; about the height of a paragraph
  return () => {
    const bands = new Map();
    const tall = [];
    function add(thing) {
      const first = Math.floor(thing.rect.top / BAND), last = Math.floor(thing.rect.bottom / BAND);
      if (!(last - first < 64)) {
        tall.push(thing);
        return;
      }
      for (let band = first; band <= last; band += 1) {
        if (!bands.has(band)) bands.set(band, []);
        bands.get(band).push(thing);
      }
    }
    const belongs = dom.bound(Node, "contains");
    function* at(x, y, scope, any, inside) {
      for (const list of [bands.get(Math.floor(y / BAND)) || [], tall]) {
        for (const thing of list) {
          if ((thing.scope !== scope && !any) || !boxes.holds(thing.rect, x, y)) continue;
          if (!inside || (thing.element && belongs(thing.element, inside))) yield thing;
        }
      }
    }
    // Scopes from the item's own outwards, each with the rectangle that stands for the item in it, and, once
    // that is not where it will be, with what a thing has to be around.
    function* scopes(rect, scope) {
      for (let inner = rect, of = null; scope; inner = scope.rect, of = scope.of || of, scope = scope.parent) {
        yield [inner, scope, of];
      }
    }

    // Which of the rectangle's sample points are under something opaque that is painted after `order`: none
    // (0), all (1) or some (0.5). `except(element)`: things that belong to the item itself.
    function over(rect, scope, order, except) {
      const under = [false, false, false, false, false];
      for (const [inner, one, of] of scopes(rect, scope)) {
        boxes.samples(inner).forEach(([x, y], i) => {
          if (under[i]) return;
          // An item that stays in view (its own scope is the outermost) sees all that lies there now.
          for (const thing of at(x, y, one, !one.parent && inner === rect, of)) {
            if (thing.opaque && layers.compare(thing.order, order) > 0 && !(except && except(thing.element))) {
              under[i] = true;
              return;
            }
          }
        });
      }
      const count = under.filter(Boolean).length;
      return count === 0 ? 0 : count === under.length ? 1 : 0.5;
    }

    // The colour that is seen through the rectangle's middle under `order`: [r, g, b], or null: a picture.
    function ground(rect, scope, order, canvas) {
      const below = [];
      for (const [inner, one, of] of scopes(rect, scope)) {
        const [x, y] = [(inner.left + inner.right) / 2, (inner.top + inner.bottom) / 2];
        for (const thing of at(x, y, one, false, of)) if (layers.compare(thing.order, order) < 0) below.push(thing);
      }
      below.sort((a, b) => layers.compare(a.order, b.order));
      let colour = canvas;
      for (const { colour: top } of below) {
        if (top === null) colour = null;
        else if (top[3] > 0.98) colour = top.slice(0, 3);
        else if (colour !== null) colour = colours.over(top, top[3], colour);
      }
      return colour;
    }
    return { add, over, ground };
  };
})()
