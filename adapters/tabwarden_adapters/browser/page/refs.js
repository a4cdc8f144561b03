// Numbers of this document's elements: refs.of(document, element) -> `r<document>.<number>`, and back. They live
// in our isolated world of the document, so they end with it; the document's part is random, so one page's
// numbers mean nothing in another. Needs dom.js.
(() => {
  const ENTRIES = 50_000;  // more than a page has controls; then the oldest are forgotten
  function table(document) {
    // Not `globalThis.x || ...`: a page names properties of windows with its elements' ids.
    if (!Object.hasOwn(globalThis, "tabwardenRefs") || globalThis.tabwardenRefs.document !== document) {
      const random = crypto.getRandomValues(new Uint8Array(8));
      const name = [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      const value = { document, name, next: 1, numbers: new WeakMap(), elements: new Map() };
      Object.defineProperty(globalThis, "tabwardenRefs", { value, configurable: true });
    }
    return globalThis.tabwardenRefs;
  }
  return {
    of(document, element) {
      const known = table(document);
      let number = known.numbers.get(element);
      if (number === undefined || !known.elements.has(number)) {
        number = known.next++;
        known.numbers.set(element, number);
        known.elements.set(number, new WeakRef(element));
        if (known.elements.size > ENTRIES) known.elements.delete(known.elements.keys().next().value);
      }
      return `r${known.name}.${number}`;
    },
    get(document, name, number) {
      const known = table(document);
      const element = name === known.name ? known.elements.get(number)?.deref() : undefined;
      return element && dom.connected(element) ? element : null;
    },
  };
})()
