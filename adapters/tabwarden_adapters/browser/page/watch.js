// Runs in our isolated world before anything else in each document, and remembers which inputs were ever of type
// password: `Show password` makes them look like any other. Nothing leaves; sensitive.js asks.
(() => {
  if (Object.hasOwn(globalThis, "tabwardenOncePasswords")) return;
  const passwords = new WeakSet();
  Object.defineProperty(globalThis, "tabwardenOncePasswords", { value: passwords });
  const typeOf = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "type").get;
  const inside = Object.getOwnPropertyDescriptor(HTMLIFrameElement.prototype, "contentDocument").get;
  const frameElement = (node) => node instanceof HTMLIFrameElement;
  const watched = new WeakSet();
  const observer = new MutationObserver((records) => {
    for (const { target, oldValue } of records) {
      if (oldValue !== null && oldValue.trim().toLowerCase() === "password") passwords.add(target);
    }
  });
  function observe(root) {
    if (watched.has(root)) return;
    watched.add(root);
    observer.observe(root, { subtree: true, attributeFilter: ["type"], attributeOldValue: true });
  }
  // Shadow trees are found when somebody goes to one of their fields, which is before it is typed into.
  function met(event) {
    for (const node of event.composedPath()) {
      if (node instanceof ShadowRoot) observe(node);
      else if (node instanceof HTMLInputElement && typeOf.call(node) === "password") passwords.add(node);
    }
  }
  function watch(document) {
    if (watched.has(document)) return;
    observe(document);
    for (const type of ["focusin", "pointerdown", "input"]) {
      document.addEventListener(type, met, { capture: true, passive: true });
    }
    document.addEventListener("load", ({ target }) => {
      // A frame's document has a world of its own that this one cannot ask.
      const there = frameElement(target) && inside.call(target);
      if (there) watch(there);
    }, true);
  }
  watch(document);
})()
