// Runs in our isolated world before anything else in a document that comes while an action acts on the one before
// it: an input event on its way is not for this one. Up until the next action, or for as long as such an event
// can be on its way. A frame is not shielded: what it gets is judged by the guard of the page around it.
(() => {
  if (window !== window.top || Object.hasOwn(globalThis, "tabwardenShield")) return;
  const LONGEST_MS = 500;
  const TYPES = ["pointerdown", "mousedown", "pointerup", "mouseup", "click", "auxclick", "dblclick", "contextmenu",
    "beforeinput", "keydown", "keypress", "keyup"];
  const stop = (event) => {
    if (!event.isTrusted) return;
    event.stopImmediatePropagation();
    event.preventDefault();
  };
  const value = () => TYPES.forEach((type) => window.removeEventListener(type, stop, true));
  TYPES.forEach((type) => window.addEventListener(type, stop, true));
  Object.defineProperty(globalThis, "tabwardenShield", { value });
  setTimeout(value, LONGEST_MS);
})()
