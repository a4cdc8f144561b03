// Colours as they are painted: rgba(css) -> [r, g, b, alpha] (0..255, 0..1) or null; and what can be told apart.
(() => {
  const CACHED = 4_096;  // a page has some hundred colours
  const cache = new Map();
  let pen = null;
  const PLAIN = /^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/;

  // lab(), color() and what comes later: painted, and looked at.
  function painted(css) {
    try {
      pen = pen || new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = "#010203";
      pen.fillStyle = css;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, alpha] = pen.getImageData(0, 0, 1, 1).data;
      return [r, g, b, alpha / 255];
    } catch {
      return null;
    }
  }
  function rgba(css) {
    let known = cache.get(css);
    if (known === undefined) {
      const plain = PLAIN.exec(css);
      known = plain ? [...plain.slice(1, 4).map(Number), plain[4] === undefined ? 1 : Number(plain[4])] : painted(css);
      if (cache.size >= CACHED) cache.clear();
      cache.set(css, known);
    }
    return known;
  }

  const over = (top, alpha, below) => top.slice(0, 3).map((value, i) => value * alpha + below[i] * (1 - alpha));

  function luminance(rgb) {
    const [r, g, b] = rgb.map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  // WCAG contrast ratios: #eee on white is 1.16 and can just be read. Equally bright colours can differ in hue.
  const CONTRAST = 1.15;
  const HUE = 40;
  function differ(a, b) {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    if ((high + 0.05) / (low + 0.05) >= CONTRAST) return true;
    return Math.max(...a.map((value, i) => Math.abs(value - b[i]))) >= HUE;
  }

  // The colours in a gradient or a shadow, as computed style writes them.
  const COLOUR = /(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch|color)\([^()]*\)/g;
  const within = (css) => (css.match(COLOUR) || []).map(rgba).filter(Boolean);

  // What a `filter` does: {opacity, blur (px), maps (functions of rgb), unknown}.
  function filter(css) {
    const found = { opacity: 1, blur: 0, maps: [], unknown: false };
    if (css === "none") return found;
    for (const [, name, argument] of css.matchAll(/([a-z-]+)\(((?:[^()]|\([^()]*\))*)\)/g)) {
      const amount = argument.endsWith("%") ? parseFloat(argument) / 100 : parseFloat(argument);
      const each = (change) => found.maps.push((rgb) => rgb.map((v) => Math.min(255, Math.max(0, change(v)))));
      if (name === "opacity") found.opacity *= amount;
      else if (name === "blur") found.blur += amount;
      else if (name === "brightness") each((v) => v * amount);
      else if (name === "contrast") each((v) => (v - 127.5) * amount + 127.5);
      else if (name === "invert") each((v) => v * (1 - amount) + (255 - v) * amount);
      else if (name === "grayscale") {
        found.maps.push((rgb) => {
          const grey = 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
          return rgb.map((v) => v + (grey - v) * Math.min(1, amount));
        });
      } else if (name === "url") found.unknown = true;
    }
    return found;
  }
  return { rgba, over, differ, within, filter, apply: (maps, rgb) => maps.reduce((value, map) => map(value), rgb) };
})()
