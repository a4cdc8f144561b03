// What a field holds, and changing it so that the page notices. Needs dom.js, reach.js and eligible.js.
(() => {
  const property = (Class, key) => {
    const found = Object.getOwnPropertyDescriptor(Class.prototype, key);
    return { get: Function.prototype.call.bind(found.get), set: Function.prototype.call.bind(found.set) };
  };
  const values = {
    input: property(HTMLInputElement, "value"), textarea: property(HTMLTextAreaElement, "value"),
  };
  const maxLengths = {
    input: dom.bound(HTMLInputElement, "maxLength"), textarea: dom.bound(HTMLTextAreaElement, "maxLength"),
  };
  const selects = { input: dom.bound(HTMLInputElement, "select"), textarea: dom.bound(HTMLTextAreaElement, "select") };
  const checked = dom.bound(HTMLInputElement, "checked");
  const indeterminate = dom.bound(HTMLInputElement, "indeterminate");
  const innerText = dom.bound(HTMLElement, "innerText");
  const focus = dom.bound(HTMLElement, "focus");
  const create = dom.bound(Document, "createElement");
  const createRange = dom.bound(Document, "createRange");
  const execCommand = dom.bound(Document, "execCommand");
  const active = { 9: dom.bound(Document, "activeElement"), 11: dom.bound(ShadowRoot, "activeElement") };
  const setAttribute = dom.bound(Element, "setAttribute");
  const dispatch = dom.bound(EventTarget, "dispatchEvent");
  const options = dom.bound(HTMLSelectElement, "options");
  const option = {
    value: dom.bound(HTMLOptionElement, "value"), selected: property(HTMLOptionElement, "selected"),
  };

  // Editors keep spaces as no-break spaces, and paragraphs as one or two line feeds.
  const rich = (text) =>
    text.replace(/[\u200b\ufeff]/g, "").replace(/\u00a0/g, " ").replace(/\r\n?/g, "\n").replace(/\n+/g, "\n")
      .replace(/\n$/, "");

  function read(element) {
    const known = values[dom.name(element)];
    return known ? known.get(element) : rich(innerText(element));
  }
  const same = (element, text) => read(element) === (values[dom.name(element)] ? text : rich(text));

  // What is to be inserted for it to hold `text`: an editor that folds white space needs other spaces, as it
  // makes them itself of a person's.
  function insertable(element, text) {
    const folds = !values[dom.name(element)] && !/pre|break-spaces/.test(reach.styleOf(element).whiteSpaceCollapse +
      reach.styleOf(element).whiteSpace);
    return folds ? text.replace(/ (?= )/g, "\u00a0") : text;
  }

  const COUNTED = new Set(["text", "search", "url", "tel", "email"]);  // whose maxlength means anything
  // Would the field keep `text` as it is? Asked of another one like it, which the page does not see.
  function keeps(element, text) {
    const name = dom.name(element);
    if (!values[name]) return true;
    const counted = name === "textarea" || COUNTED.has(dom.inputType(element));
    const longest = counted ? maxLengths[name](element) : -1;
    if (longest >= 0 && text.length > longest) return false;
    const probe = create(dom.ownerDocument(element), name);
    if (name === "input") {
      for (const key of ["type", "multiple", "min", "max", "step"]) {
        if (dom.has(element, key)) setAttribute(probe, key, dom.attribute(element, key));
      }
    }
    values[name].set(probe, text);
    return values[name].get(probe) === text;
  }

  function focused(element) {
    for (let at = element; at; at = reach.viewOf(at).frameElement) {
      for (let inner = at; inner; ) {
        const root = dom.root(inner);
        if (!active[dom.type(root)] || active[dom.type(root)](root) !== inner) return false;
        inner = dom.type(root) === 11 ? dom.host(root) : null;
      }
    }
    return true;
  }

  const event = (element, type, composed) =>
    dispatch(element, new (reach.viewOf(element).Event)(type, { bubbles: true, composed }));
  const announce = (element) => {
    event(element, "input", true);
    event(element, "change", false);
  };

  // A field that was typed into tells its change when it loses the focus. That is too late: it is told now, and
  // the browser's own word of the same change is held back, unless more has been typed by then.
  function changed(element) {
    const [view, now] = [reach.viewOf(element), read(element)];
    const types = ["change", "input", "focusout"];
    const forget = () => types.forEach((type) => view.removeEventListener(type, heard, true));
    function heard(event) {
      if (!event.isTrusted || event.composedPath()[0] !== element) return;
      forget();
      if (event.type === "change" && read(element) === now) event.stopImmediatePropagation();
    }
    event(element, "change", false);
    types.forEach((type) => view.addEventListener(type, heard, true));
  }

  function all(element) {
    const name = dom.name(element);
    if (selects[name]) return selects[name](element);
    const range = createRange(dom.ownerDocument(element));
    range.selectNodeContents(element);
    const selection = reach.viewOf(element).getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  }

  // Past what a framework keeps on the element itself: in this world there is only the native setter.
  function put(element, text) {
    values[dom.name(element)].set(element, text);
    announce(element);
  }
  function restore(element, before) {
    if (values[dom.name(element)]) {
      if (read(element) !== before) put(element, before);
    } else if (read(element) !== before) execCommand(dom.ownerDocument(element), "undo");
  }

  function toggled(element) {
    if (eligible.toggle(element) === "native") return indeterminate(element) ? null : checked(element);
    const said = dom.attribute(element, "aria-checked").trim().toLowerCase();
    return said === "true" ? true : said === "false" || said === "" ? false : null;
  }

  // The options that a person could choose, by their value.
  function choices(element, value) {
    return [...options(element)].filter((one) => {
      if (option.value(one) !== value || dom.matches(one, ":disabled")) return false;
      for (let at = one; at && at !== element; at = dom.parentNode(at)) {
        if (sensitive(at) || dom.has(at, "hidden") || dom.attribute(at, "aria-disabled") === "true") return false;
        if (reach.styleOf(at).display === "none" || dom.matches(at, "optgroup:disabled")) return false;
      }
      return true;
    });
  }
  const chosen = (element) => [...options(element)].filter((one) => option.selected.get(one));
  function choose(element, one) {
    option.selected.set(one, true);
    announce(element);
  }

  return {
    read, same, keeps, insertable, focused, focus, all, put, restore, changed, toggled, choices, chosen, choose,
  };
})()
