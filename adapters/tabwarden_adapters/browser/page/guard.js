// guard(views, kind, accepts): while it is up, trusted events of `kind` (CLICKS or EDITS) that reach these windows
// and that `accepts(node)` does not want are stopped before the page's handlers and without their default. What
// is checked before an event is sent can have changed when it arrives: this is the check at its arrival.
// `told` are two functions, `pressed` and `released`, that get what was seen when that has come.
(() => {
  const KINDS = {
    clicks: ["pointerdown", "mousedown", "pointerup", "mouseup", "click", "auxclick", "dblclick", "contextmenu"],
    edits: ["beforeinput", "keydown", "keypress", "keyup"],
  };
  const LONGEST_MS = 15_000;  // longer than an action may take

  return function guard(views, kind, accepts, told) {
    const met = new Map();
    const strayed = new Set();
    let shut = false;
    let released = false;
    function judge(event) {
      if (!event.isTrusted) return;
      if (/up$/.test(event.type)) {
        released = true;
        // After the click, which comes in the same turn as its release.
        if (shut) soon(down);
      }
      let ours = false;
      try {
        const node = event.composedPath()[0];
        ours = !shut && accepts(node);
        // Let go outside of everything: the page may know of that, and nothing is clicked by it.
        if (!ours && /up$/.test(event.type) && node === dom.documentElement(dom.ownerDocument(node))) return;
      } catch { /* a window, or a node that is gone */ }
      if (ours) met.set(event.type, event);
      else {
        strayed.add(event.type);
        event.stopImmediatePropagation();
        event.preventDefault();
      }
      // At once where that is all there is to know: the page may be about to leave.
      if (event.type === "click" && ours) told.released(state());
      else if (event.type === "mousedown") told.pressed(state());
      else if (/down$/.test(event.type)) soon(told.pressed);
      else if (/up$/.test(event.type)) soon(told.released);
    }
    // After all handlers of all events of this press or release. A timer would be slow behind a popup.
    function soon(tell) {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        tell(state());
      };
      port2.postMessage(null);
    }
    for (const view of views) {
      for (const type of KINDS[kind]) view.addEventListener(type, judge, true);
      if (kind === "edits") view.addEventListener("beforeinput", judge);  // again, after the page's handlers
      // A document may come back from the back/forward cache as it was left.
      view.addEventListener("pagehide", down, { once: true });
    }
    const timer = setTimeout(() => down(), LONGEST_MS);
    function down() {
      clearTimeout(timer);
      for (const view of views) {
        for (const type of KINDS[kind]) view.removeEventListener(type, judge, true);
        view.removeEventListener("beforeinput", judge);
        view.removeEventListener("pagehide", down);
      }
    }
    const prevented = (type) => met.has(type) && met.get(type).defaultPrevented;
    const state = () => ({
      pressed: met.has("pointerdown") && (met.has("mousedown") || prevented("pointerdown")) &&
        !strayed.has("pointerdown") && !strayed.has("mousedown"),
      // The page acts on the press itself, as menus do that open under the pointer.
      consumed: prevented("pointerdown") || prevented("mousedown"),
      clicked: met.has("click"),
    });
    return {
      down: () => {
        if (!shut) down();
      },
      // Given up: nothing is wanted any more. Events have a way of their own through the browser, so it stays for
      // the release that follows, whatever is asked of it before that has come.
      shut: () => {
        shut = true;
        if (released) soon(down);
      },
    };
  };
})()
