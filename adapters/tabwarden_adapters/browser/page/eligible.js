// eligible(element, action) -> "" or why this action must not be done to it. Every word of it is in
// target_element.py. Needs dom.js, sensitive.js and reach.js.
(() => {
  const value = {
    input: dom.bound(HTMLInputElement, "value"), textarea: dom.bound(HTMLTextAreaElement, "value"),
  };
  const files = dom.bound(HTMLInputElement, "files");
  const fieldsOf = dom.bound(HTMLFormElement, "elements");
  const buttonType = dom.bound(HTMLButtonElement, "type");
  const href = dom.bound(HTMLAnchorElement, "href");
  const multiple = dom.bound(HTMLSelectElement, "multiple");
  const checkVisibility = dom.bound(Element, "checkVisibility");

  const SET = new Set(["date", "time", "datetime-local", "month", "week", "range", "color"]);
  const TYPED = new Set(["text", "search", "tel", "url", "email", "number", ...SET]);
  const CONTROLS = new Set(["button", "input", "select", "textarea", "option", "optgroup"]);
  const TOGGLES = new Set(["checkbox", "switch"]);
  const NO_CLICK = new Set("select option optgroup iframe frame object embed html body".split(" "));
  const WEB = /^(?:https?|javascript):/i;  // any other scheme starts a program, or is refused by Chromium
  const role = (element) => dom.attribute(element, "role").trim().toLowerCase();
  const truth = (element, name) => dom.attribute(element, name).trim().toLowerCase() === "true";

  const around = function* (element) {
    for (let at = element; at; at = reach.up(at)) yield at;
  };

  function disabled(element) {
    for (const at of around(element)) {
      // A fieldset's own state says nothing of the fields in its legend: each field is asked itself.
      if (CONTROLS.has(dom.name(at)) && dom.matches(at, ":disabled")) return true;
      if (dom.has(at, "inert") || truth(at, "aria-disabled")) return true;
    }
    return dom.name(element).includes("-") && dom.matches(element, ":disabled");
  }

  function unseen(element) {
    if (!checkVisibility(element, { visibilityProperty: true })) return true;
    let opacity = 1;
    for (const at of around(element)) {
      const style = reach.styleOf(at);
      opacity *= Number(style.opacity);
      for (const [, amount, percent] of style.filter.matchAll(/opacity\(([\d.]+)(%?)\)/g)) {
        opacity *= percent ? Number(amount) / 100 : Number(amount);
      }
    }
    const box = dom.rect(element);
    return opacity < 0.1 || box.width <= 1 || box.height <= 1;
  }

  // The controls that labels around hand a click on to.
  function labelled(element) {
    const controls = [];
    for (const at of around(element)) {
      const control = dom.name(at) === "label" ? reach.control(at) : null;
      if (control) controls.push(control);
    }
    return controls;
  }

  function secret(element) {
    for (const at of around(element)) if (sensitive(at)) return true;
    return false;
  }

  // Does a click here send a form that holds something an agent may not touch? The page's own hidden tokens do
  // not count, nor does a name to log in with: what a person, or a password manager, has put in does.
  function submitsSecrets(element) {
    for (const at of around(element)) {
      const name = dom.name(at);
      const submits = (name === "button" && buttonType(at) === "submit") ||
        (name === "input" && ["submit", "image"].includes(dom.inputType(at)));
      if (!submits) continue;
      const form = dom.form(at);
      for (const field of form ? fieldsOf(form) : []) {
        const kind = dom.name(field);
        if (kind === "input" && dom.inputType(field) === "file") {
          if (files(field).length) return true;
        } else if (value[kind] && value[kind](field) !== "") {
          if (kind === "input" && !TYPED.has(dom.inputType(field)) && dom.inputType(field) !== "password") continue;
          const reason = sensitive(field);
          if (reason && reason !== "hidden" && reason !== "account") return true;
        }
      }
      return false;
    }
    return false;
  }

  function clickable(element) {
    const name = dom.name(element);
    if (NO_CLICK.has(name)) return "kind";
    if (name === "input" && SET.has(dom.inputType(element)) && dom.inputType(element) !== "range") return "kind";
    for (const at of around(element)) {
      if (dom.name(at) === "a" && dom.has(at, "href") && !WEB.test(href(at))) return "kind";
    }
    const controls = labelled(element);
    if (controls.some(secret)) return "sensitive";
    if (controls.some(disabled)) return "disabled";
    if (controls.some((control) => clickableControl(control))) return "kind";
    return submitsSecrets(element) ? "submits-secrets" : "";
  }
  const clickableControl = (control) =>
    NO_CLICK.has(dom.name(control)) || (dom.name(control) === "input" && SET.has(dom.inputType(control)));

  // How an element takes text: "text" (Input.insertText), "set" (by its value), "rich", or "".
  function typing(element) {
    const name = dom.name(element);
    if (name === "textarea") return "text";
    if (name === "input") {
      const type = dom.inputType(element);
      return SET.has(type) ? "set" : TYPED.has(type) ? "text" : "";
    }
    return reach.editingHost(element) && !NO_CLICK.has(name) ? "rich" : "";
  }
  function toggle(element) {
    const native = dom.name(element) === "input";
    if (native) return dom.inputType(element) === "checkbox" ? "native" : "";
    return TOGGLES.has(role(element)) && !["a", "label"].includes(dom.name(element)) ? "aria" : "";
  }

  const KINDS = {
    click: clickable,
    type: (element) => {
      if (!typing(element)) return "kind";
      const fixed = dom.has(element, "readonly") && typing(element) !== "rich";
      return fixed || truth(element, "aria-readonly") ? "readonly" : "";
    },
    select: (element) => (dom.name(element) !== "select" || multiple(element) ? "kind" : ""),
    check: (element) => {
      if (!toggle(element)) return "kind";
      if (truth(element, "aria-readonly")) return "readonly";
      return toggle(element) === "aria" ? clickable(element) : "";
    },
    label: clickable,
  };

  // Everything but whether it shows: a checkbox may be seen by its label alone.
  function fit(element, action) {
    if (!dom.connected(element) || !reach.viewOf(element)) return "gone";
    if (secret(element)) return "sensitive";
    return KINDS[action](element) || (disabled(element) ? "disabled" : "");
  }
  const eligible = (element, action) => fit(element, action) || (unseen(element) ? "unseen" : "");
  return Object.assign(eligible, { fit, unseen, disabled, secret, typing, toggle });
})()
