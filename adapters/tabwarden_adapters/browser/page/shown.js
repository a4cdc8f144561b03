// Resolves as soon as this document was shown, hidden or focused more often than `seen` times:
// {changes, hides, focuses, visible}. The listeners stay for the document's life, so no switch is missed
// between two calls. `renew` says that they were taken away (by document.open).
function (seen, renew) {
  // A page's element with this id would be found on the window otherwise, in our world too.
  let shown = Object.hasOwn(globalThis, "tabwardenShown") ? globalThis.tabwardenShown : null;
  if (!shown || renew) {
    shown = globalThis.tabwardenShown = { changes: 0, hides: 0, focuses: 0, leaving: false, wake: () => {} };
    const changed = () => {
      shown.changes += 1;
      shown.wake();
    };
    const on = (target, type, act) =>
      target.addEventListener(type, (event) => event.isTrusted && act(event), true);
    // A document that is navigated away from is told that it is hidden: that is no switch of tabs.
    on(window, "pagehide", () => { shown.leaving = true; });
    on(window, "pageshow", () => { shown.leaving = false; changed(); });
    on(document, "visibilitychange", () => {
      if (shown.leaving) return;
      if (document.visibilityState === "hidden") shown.hides += 1;
      changed();
    });
    // Two windows can both be visible: the one that a person goes to is the foreground.
    on(window, "focus", (event) => {
      if (event.target !== window) return;
      shown.focuses += 1;
      changed();
    });
  }
  const state = () => ({
    changes: shown.changes,
    hides: shown.hides,
    focuses: shown.focuses,
    visible: document.visibilityState === "visible",
  });
  if (shown.changes !== seen) return Promise.resolve(state());
  return new Promise((resolve) => { shown.wake = () => resolve(state()); });
}
