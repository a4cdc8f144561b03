// What a control is and is called, for a person who hears the page: {role(element), name(element)}. A part of
// "Accessible Name and Description Computation 1.2": aria-labelledby, aria-label, labels, its own text, alt,
// placeholder, title. What is typed into fields and what is sensitive is no part of a name. Needs dom.js and
// sensitive.js.
(() => {
  const CHARACTERS = 200;  // a name; what is longer is a text
  const NODES = 400;
  const ATTRIBUTE = 1_000;  // looked at of a list of words
  const SILENT = new Set("script style template noscript select textarea input option iframe object svg".split(" "));
  const ROLES = new Set(
    ("button link checkbox radio switch tab menuitem menuitemcheckbox menuitemradio option combobox textbox " +
     "searchbox slider spinbutton treeitem listbox").split(" "));
  const INPUTS = {
    button: "button", submit: "button", reset: "button", image: "button", checkbox: "checkbox", radio: "radio",
    range: "slider", number: "spinbutton", search: "searchbox",
  };
  const multiple = dom.bound(HTMLSelectElement, "multiple"), size = dom.bound(HTMLSelectElement, "size");

  function role(element, name) {
    const said = dom.attribute(element, "role").trim().slice(0, ATTRIBUTE).toLowerCase().split(/\s+/)[0];
    if (ROLES.has(said)) return said;
    if (name === "a" || name === "area") return dom.has(element, "href") ? "link" : "";
    if (name === "button") return "button";
    if (name === "input") return INPUTS[dom.inputType(element)] || "textbox";
    if (name === "select") return multiple(element) || size(element) > 1 ? "listbox" : "combobox";
    if (name === "textarea") return "textbox";
    if (name === "summary") {
      const around = dom.parentNode(element);
      return around && dom.type(around) === 1 && dom.name(around) === "details" ? "button" : "";
    }
    if (!dom.editable(element)) return "";
    const around = dom.composedParent(element);
    return around && dom.editable(around) ? "" : "textbox";
  }

  const tidy = (text) => [...clean(text.slice(0, 4 * CHARACTERS)).replace(/\s+/g, " ").trim()].slice(0, CHARACTERS).join("");
  // The text inside, without fields, hidden and sensitive parts.
  function content(element) {
    let [text, left] = ["", NODES];
    const walk = (node) => {
      if ((left -= 1) < 0 || text.length > 2 * CHARACTERS) return;
      const type = dom.type(node);
      if (type === 3) text += dom.textContent(node);
      if (type !== 1) return;
      const name = dom.name(node);
      if (name === "img") text += ` ${dom.attribute(node, "alt")} `;
      if (SILENT.has(name) && node !== element) return;
      if (node !== element && (dom.attribute(node, "aria-hidden") === "true" || sensitive(node))) return;
      const style = dom.view(dom.ownerDocument(node)).getComputedStyle(node);
      if (style.display === "none" || style.visibility !== "visible") return;
      const apart = style.display.startsWith("inline") ? "" : " ";
      text += apart;
      for (const child of dom.composedChildren(node)) walk(child);
      text += apart;
    };
    walk(element);
    return tidy(text);
  }

  const OWN = new Set(["button", "link", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "switch",
    "checkbox", "radio", "treeitem"]);
  const PUSHED = new Set(["button", "submit", "reset"]);
  function name(element, kind) {
    const root = dom.root(element);
    const byId = dom.type(root) === 9 ? dom.elementById : dom.shadowHost(root) && dom.rootElementById;
    const labels = byId ? dom.attribute(element, "aria-labelledby").slice(0, ATTRIBUTE) : "";
    const ids = labels.split(/\s+/).filter(Boolean).slice(0, 8);
    const pushed = dom.name(element) === "input" && PUSHED.has(dom.inputType(element));
    const sources = [
      () => ids.map((id) => byId(root, id)).filter(Boolean).map(content).join(" "),
      () => dom.attribute(element, "aria-label"),
      () => dom.labels(element).map(content).join(" "),
      () => (pushed ? dom.attribute(element, "value") || { submit: "Submit", reset: "Reset" }[dom.inputType(element)] || "" : ""),
      () => (OWN.has(kind) && dom.name(element) !== "input" ? content(element) : ""),
      () => dom.attribute(element, "alt"),
      () => dom.attribute(element, "placeholder"),
      () => dom.attribute(element, "title"),
    ];
    for (const source of sources) {
      const found = tidy(source());
      if (found) return found;
    }
    return "";
  }
  return { role, name, content, tidy };
})()
