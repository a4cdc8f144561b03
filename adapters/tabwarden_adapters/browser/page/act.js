// The hands: an object whose methods do one step of an action each, or null when the document is no longer at
// `address`. `this` is the document. The steps' order, and what goes out as input events, is acting.py's.
// Answers {denied: reason} when it must not go on; every reason is in target_element.py.
function (address) {
  const document = this;
  const window = dom.view(document);
  const bare = (url) => url.split("#", 1)[0];
  if (!window || bare(window.location.href) !== bare(address)) return null;

  if (Object.hasOwn(globalThis, "tabwardenShield")) globalThis.tabwardenShield();  // that was for another action

  const STABLE_MS = 1_500;  // an animation that brings something in is shorter
  const FRAME_MS = 4_000;  // without a frame for so long, nothing is being painted; a busy machine takes two seconds
  const KEPT_MS = 500;  // a framework that renders later than this is not waited for
  let target = null;  // what was asked for
  let element = null;  // what it is
  let surface = null;  // what is clicked for it
  let text = "";  // what is to be in it
  let before = "";  // what was in it
  let wall = null;  // the guard that is up

  const frame = () => new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), FRAME_MS);
    window.requestAnimationFrame(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
  const frames = async () => (await frame()) && (await frame());

  // True once `holds` does, after the page's handlers and what they put off to the next frames.
  async function kept(holds) {
    const end = performance.now() + KEPT_MS;
    for (;;) {
      const painted = await frames();
      if (holds()) return true;
      if (!painted || performance.now() > end) return false;
    }
  }

  // ---- the target -----------------------------------------------------------------------------------
  function look(wanted) {
    target = wanted;
    const found = find(document, wanted);
    element = found.elements.length === 1 ? found.elements[0] : null;
    return { count: found.elements.length, stale: found.stale };
  }
  // A framework may have drawn it anew: then it is the one that the same words mean now.
  function current() {
    if (element && !dom.connected(element)) look(target);
    return element;
  }

  const where = (one) => JSON.stringify(reach.boxes(one));
  async function still(one) {
    const end = performance.now() + STABLE_MS;
    let last = null;  // from frame to frame: what is measured before one may be that frame's already
    for (;;) {
      if (!(await frame())) return "not-painted";
      const now = where(one);
      if (now === last) return "";
      if (performance.now() > end) return "moving";
      last = now;
    }
  }
  const open = (one) => reach.points(one).find(({ x, y }) => {
    const met = reach.hit(document, x, y);
    return met && reach.lands(met, one);
  });

  // Bring it into view, wait until it is still, and find a point where it can be hit.
  async function reachable(one) {
    if (reach.framesAround(one).some((frame) => reach.turned(frame) || eligible.unseen(frame))) return "unseen";
    let denied = "out-of-view";
    for (const block of ["", "nearest", "center", "end", "start"]) {
      if (block) {
        // Not where it is: under a header that stays, for instance.
        const inline = block === "nearest" ? block : "center";
        reach.scrollIntoView(one, { block, inline, behavior: "instant" });
      }
      const moving = await still(one);
      if (moving) return moving;
      if (!dom.connected(one)) return "gone";
      const point = open(one);
      if (point) return point;
      if (reach.boxes(one).length) denied = "covered";
    }
    return denied;
  }

  async function prepare(action) {
    let denied = eligible.fit(element, action);
    if (denied) return { denied };
    const others = action === "check" && eligible.toggle(element) === "native" ? dom.labels(element) : [];
    for (const one of [element, ...others]) {
      const why = one === element ? (eligible.unseen(one) ? "unseen" : "") : eligible(one, "label");
      const point = why || await reachable(one);
      if (typeof point === "object") {
        surface = one;
        return point;
      }
      denied = denied || point;
    }
    return { denied };
  }

  function judge(action, x, y) {
    const denied = eligible.fit(element, action);
    if (denied) return denied;
    if (surface !== element) {
      const why = eligible(surface, "label");
      if (why || reach.control(surface) !== element) return why || "covered";
    } else if (eligible.unseen(element)) return "unseen";
    const met = reach.hit(document, x, y);
    return met && reach.lands(met, surface) ? "" : "covered";
  }

  // Asked for before the press: a document that is being left takes no more questions.
  const told = {};
  const pressed = new Promise((resolve) => { told.pressed = resolve; });
  const released = new Promise((resolve) => { told.released = resolve; });
  const lower = () => {
    if (wall) wall.down();
  };
  function raise(one, kind, accepts) {
    lower();
    wall = guard(reach.windowsAround(one), kind, accepts, told);
  }
  function done() {
    lower();
    told.pressed(null);
    told.released(null);
  }

  // ---- clicking ---------------------------------------------------------------------------------------
  // Look again and put up the guard: what comes next is the press.
  function arm(action, x, y) {
    const denied = judge(action, x, y);
    if (denied) return { denied };
    // A label hands its click on: that one must arrive as well.
    const handed = [];
    for (let at = surface; at; at = reach.up(at)) {
      if (dom.name(at) === "label" && reach.control(at)) handed.push(reach.control(at));
    }
    const accepts = (node) => (reach.lands(node, surface) || handed.includes(node)) && !eligible.secret(surface);
    raise(surface, "clicks", accepts);
    return {};
  }

  // ---- typing -----------------------------------------------------------------------------------------
  function intend(wanted) {
    const denied = eligible.fit(element, "type");
    if (denied) return { denied };
    text = wanted;
    return { how: eligible.typing(element), same: fields.same(element, text), keeps: fields.keeps(element, text) };
  }
  // All is selected and the guard is up: what comes next is the text, which replaces it.
  function enter() {
    const denied = eligible(element, "type");
    if (denied) return { denied };
    if (!fields.focused(element)) return { denied: "not-focused" };
    before = fields.read(element);
    fields.all(element);
    if (!fields.focused(element)) return { denied: "not-focused" };
    const accepts = (node) => node === element && fields.focused(element) && !eligible.fit(element, "type");
    raise(element, "edits", accepts);
    return { empty: before === "", text: fields.insertable(element, text) };
  }
  function set() {
    fields.focus(element, { preventScroll: true });
    const denied = eligible(element, "type");
    if (denied) return { denied };
    before = fields.read(element);
    fields.put(element, text);
    return {};
  }
  async function entered(change) {
    const holds = () => dom.connected(element) && !eligible.secret(element) && fields.same(element, text);
    let ok = await kept(holds);
    lower();
    if (ok && change) {
      fields.changed(element);
      ok = await kept(holds);
    }
    if (!ok && dom.connected(element) && !eligible.fit(element, "type")) fields.restore(element, before);
    return { kept: ok };
  }

  // ---- choosing and checking --------------------------------------------------------------------------
  function choose(value, x, y) {
    const denied = judge("select", x, y);
    if (denied) return { denied };
    const found = fields.choices(element, value);
    if (found.length !== 1) return { denied: "option" };
    const [now] = fields.chosen(element);
    if (now !== found[0]) fields.choose(element, found[0]);
    return {};
  }
  function offers(value) {
    const denied = eligible.fit(element, "select");
    if (denied) return { denied };
    const found = fields.choices(element, value);
    return found.length === 1 ? { same: fields.chosen(element)[0] === found[0] } : { denied: "option" };
  }
  const chose = (value) => kept(() => {
    const now = current() && eligible.fit(element, "select") === "" ? fields.chosen(element) : [];
    return now.length === 1 && fields.choices(element, value)[0] === now[0];
  });
  function toggled() {
    const denied = eligible.fit(element, "check");
    return denied ? { denied } : { checked: fields.toggled(element) };
  }
  const checks = (wanted) => kept(() =>
    Boolean(current()) && eligible.fit(element, "check") === "" && fields.toggled(element) === wanted);

  return {
    look, prepare, arm, intend, enter, set, entered, offers, choose, chose, toggled, checks,
    pressed: () => pressed,
    released: () => released,
    done,
    shut: () => { if (wall) wall.shut(); },
    breathe: frame,
    scroll: (x, y) => scroller(document, frames, x, y),
  };
}
