// Rectangles: {left, top, right, bottom} in CSS pixels of a document's view; and the part of an element's box
// that clipping leaves: region(style, box) -> rectangle, or null when nothing is left of it.
(() => {
  const EVERYWHERE = { left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity };
  const meet = (a, b) => ({
    left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom),
  });
  // A line of one pixel shows nothing that can be read.
  const hasArea = (box) => box.right - box.left > 1 && box.bottom - box.top > 1;
  const area = (box) => Math.max(0, box.right - box.left) * Math.max(0, box.bottom - box.top);
  const holds = (box, x, y) => x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
  const samples = (box) => {
    const [w, h] = [box.right - box.left, box.bottom - box.top];
    return [[0.5, 0.5], [0.1, 0.25], [0.9, 0.25], [0.1, 0.75], [0.9, 0.75]]
      .map(([x, y]) => [box.left + w * x, box.top + h * y]);
  };

  // A computed length in pixels; NaN for what is not understood.
  function pixels(text, whole) {
    const plain = /^(-?[\d.]+(?:e-?\d+)?)(px|%)?$/.exec(text);
    if (plain) return plain[2] === "%" ? Number(plain[1]) * whole / 100 : Number(plain[1]);
    const sum = /^calc\((-?[\d.]+)% ([+-]) ([\d.]+)px\)$/.exec(text);
    return sum ? Number(sum[1]) * whole / 100 + (sum[2] === "-" ? -1 : 1) * Number(sum[3]) : NaN;
  }
  const parts = (text) => text.match(/calc\([^()]*\)|[^\s]+/g) || [];

  function shape(path, box) {
    const [w, h] = [box.right - box.left, box.bottom - box.top];
    const found = /^(inset|circle|ellipse|polygon|path)\((.*)\)/.exec(path);
    if (!found) return EVERYWHERE;
    const [, kind, inside] = found;
    if (kind === "inset") {
      const [top, right = top, bottom = top, left = right] = parts(inside.split(" round ")[0]);
      const sides = [pixels(top, h), pixels(right, w), pixels(bottom, h), pixels(left, w)];
      if (sides.some(Number.isNaN)) return EVERYWHERE;
      return {
        left: box.left + sides[3], top: box.top + sides[0], right: box.right - sides[1], bottom: box.bottom - sides[2],
      };
    }
    if (kind === "polygon") {
      const points = inside.replace(/^(evenodd|nonzero),\s*/, "").split(",").map((point) => parts(point));
      const xs = points.map(([x]) => pixels(x, w)), ys = points.map(([, y]) => pixels(y, h));
      if ([...xs, ...ys].some(Number.isNaN)) return EVERYWHERE;
      // Twice the area: a line there and back encloses nothing, however long it is.
      const doubled = xs.reduce((sum, x, i) => {
        const j = (i + 1) % xs.length;
        return sum + x * ys[j] - xs[j] * ys[i];
      }, 0);
      if (Math.abs(doubled) < 8) return null;
      return {
        left: box.left + Math.min(...xs), right: box.left + Math.max(...xs),
        top: box.top + Math.min(...ys), bottom: box.top + Math.max(...ys),
      };
    }
    if (kind === "path") {
      const numbers = (inside.match(/-?[\d.]+/g) || []).map(Number);
      return numbers.every((value) => Math.abs(value) <= 1) ? null : EVERYWHERE;
    }
    const [sizes, at = "50% 50%"] = inside.split(/\s*\bat\b\s*/);
    const [x, y] = parts(at), radii = parts(sizes);
    const [cx, cy] = [pixels(x, w), pixels(y, h)];
    const whole = kind === "circle" ? Math.hypot(w, h) / Math.SQRT2 : w;
    const rx = radii.length ? pixels(radii[0], whole) : NaN;
    const ry = kind === "circle" ? rx : pixels(radii[1] ?? "", h);
    if ([cx, cy, rx, ry].some(Number.isNaN)) return EVERYWHERE;
    return { left: box.left + cx - rx, right: box.left + cx + rx, top: box.top + cy - ry, bottom: box.top + cy + ry };
  }

  function region(style, box) {
    let left = style.clipPath === "none" ? EVERYWHERE : shape(style.clipPath, box);
    if (left && (style.position === "absolute" || style.position === "fixed") && style.clip !== "auto") {
      const cut = /^rect\((.*)\)$/.exec(style.clip);
      const [t, r, b, l] = cut ? cut[1].split(/,?\s+/) : [];
      const side = (value, otherwise) => (value === "auto" ? otherwise : parseFloat(value));
      left = meet(left, {
        top: box.top + side(t, 0), left: box.left + side(l, 0),
        right: box.left + side(r, box.right - box.left), bottom: box.top + side(b, box.bottom - box.top),
      });
    }
    return left && hasArea(left) ? left : null;
  }
  return { EVERYWHERE, meet, hasArea, area, holds, samples, region };
})()
