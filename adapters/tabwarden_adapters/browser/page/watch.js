// Runs in our isolated world before anything else in each document, and remembers which inputs were ever of type
// password: `Show password` makes them look like any other. Nothing leaves; sensitive.js asks.
(() => {
  if (Object.hasOwn(globalThis, "tabwardenOncePasswords")) return;
  const passwords = new WeakSet();
  Object.defineProperty(globalThis, "tabwardenOncePasswords", { value: passwords });
  // Getters tell what a node is, in frames too: those have classes of their own, and `instanceof` would deny it.
  const asked = (prototype, key) => {
    const { get } = Object.getOwnPropertyDescriptor(prototype, key);
    return (node) => {
      try {
        return get.call(node);
      } catch {
        return undefined;
      }
    };
  };
  const typeOf = asked(HTMLInputElement.prototype, "type");
  const inside = asked(HTMLIFrameElement.prototype, "contentDocument");
  const hostOf = asked(ShadowRoot.prototype, "host");
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
      if (hostOf(node)) observe(node);
      else if (typeOf(node) === "password") passwords.add(node);
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
      const there = inside(target);
      if (there) watch(there);
    }, true);
  }
  watch(document);
})()
