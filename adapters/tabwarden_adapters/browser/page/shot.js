// Makes what a picture is taken with: an object for the document at `address`, or null when it is no longer there.
// `this` is the document. Its steps run while the page is at a standstill; `done` undoes what they did.
function (address) {
  const document = this;
  const window = dom.view(document);
  const bare = (url) => url.split("#", 1)[0];
  if (!window || bare(window.location.href) !== bare(address)) return null;
  const NODES = 60_000, DEPTH = 1_000;  // as in regions.js

  const closed = new Map();
  const stopped = [];
  const outermost = (element) => {
    let svg = null;
    for (let at = element; at && dom.type(at) === 1; at = dom.parentNode(at)) {
      if (dom.svg(at) && dom.anyName(at) === "svg") svg = at;
    }
    return svg;
  };
  const paused = dom.bound(SVGSVGElement, "animationsPaused");
  const pause = dom.bound(SVGSVGElement, "pauseAnimations"), unpause = dom.bound(SVGSVGElement, "unpauseAnimations");

  return {
    // Is the page small enough to be looked through? Flat, as a page may be deeper than any stack.
    small() {
      let nodes = 0;
      const left = [[document, 0]];
      while (left.length) {
        const [node, depth] = left.pop();
        if ((nodes += 1) > NODES || depth > DEPTH) return false;
        for (const child of dom.childNodes(node)) left.push([child, depth + 1]);
        const shadow = dom.type(node) === 1 && dom.shadowRoot(node);
        if (shadow) left.push([shadow, depth + 1]);
      }
      return true;
    },
    // Nodes, one of each closed shadow tree. Returns how many trees these are.
    know(...nodes) {
      for (const node of nodes) {
        const root = dom.root(node);
        if (dom.type(root) === 11) closed.set(dom.host(root), root);
      }
      return closed.size;
    },
    // Stop what moves by SVG's own clocks, which the standstill does not.
    still(budget) {
      const { roots } = regions(document, { closed, texts: false, until: performance.now() + budget });
      for (const root of roots) {
        const found = (dom.type(root) === 9 ? dom.query : dom.rootQuery)(root, "animate, set, animateTransform, animateMotion");
        for (const svg of new Set([...found].map(outermost))) {
          if (!svg || paused(svg)) continue;
          pause(svg);
          stopped.push(svg);
        }
      }
      return stopped.length;
    },
    measure(texts, budget) {
      const found = regions(document, { closed, texts, until: performance.now() + budget });
      const { scale, offsetLeft, offsetTop, width, height } = window.visualViewport;
      const html = dom.documentElement(document);
      if (html && dom.matches(html, ":active-view-transition")) found.trouble = "moving";
      return {
        view: { scale, left: offsetLeft, top: offsetTop, width, height, ratio: window.devicePixelRatio },
        at: [window.innerWidth, window.innerHeight, window.scrollX, window.scrollY],
        regions: found.regions, things: found.things, trouble: found.trouble,
        texts: found.trouble ? [] : found.texts.map(({ text, regions, lost }) => ({ text, regions, lost: Boolean(lost) })),
      };
    },
    done() {
      for (const svg of stopped) unpause(svg);
    },
  };
}
