// What is painted over what (CSS 2.2, Appendix E): every painted thing has an order, a list of numbers, and the
// one whose list is greater is nearer to the person. layers.enter(style, above, traits) -> the part of an
// element's state that says where its own things come.
(() => {
  const BEHIND = -1e9, BLOCKS = 2, FLOATS = 3, INLINE = 4, POSITIONED = 6, TOP = 1e9;
  const root = { sc: [], ps: [], seq: 0, layer: BLOCKS, own: false };

  function compare(a, b) {
    const length = Math.min(a.length, b.length);
    for (let i = 0; i < length; i += 1) if (a[i] !== b[i]) return a[i] - b[i];
    return a.length - b.length;
  }

  let sequence = 0;
  // `traits`: {holds: it holds fixed things (a transform and the like), item: of a flex box or grid, top: in
  // the top layer, faded: partly transparent}.
  function enter(style, above, traits) {
    const seq = (sequence += 1);
    const positioned = style.position !== "static";
    const ordered = (positioned || traits.item) && style.zIndex !== "auto";
    const z = ordered ? Number(style.zIndex) : 0;
    const context = ordered || traits.top || traits.holds || traits.faded || style.position === "fixed" ||
      style.position === "sticky" || style.mixBlendMode !== "normal" || style.isolation === "isolate" ||
      style.clipPath !== "none" || style.maskImage !== "none";
    let own = null;
    if (traits.top) own = [TOP, POSITIONED, seq];
    else if (context || positioned) own = [...above.sc, z, z < 0 ? 0 : POSITIONED, seq];
    else if (style.float !== "none") own = [...above.ps, 0, FLOATS, seq];
    else if (style.display.startsWith("inline-")) own = [...above.ps, 0, INLINE, seq];
    return {
      sc: context ? own : above.sc, ps: own || above.ps, seq, own: Boolean(own),
      layer: style.display.startsWith("inline") ? INLINE : BLOCKS,
    };
  }
  // Where an element's own background comes, and a text in it.
  const ground = ({ ps, own, layer, seq }) => (own ? [...ps, BEHIND, 0, 0] : [...ps, 0, layer, seq]);
  const text = ({ ps }, seq) => [...ps, 0, INLINE, seq];
  const next = () => (sequence += 1);
  return { root, compare, enter, ground, text, next };
})()
