// The controls that a person could see in this document, from number `cursor` on, `limit` at the most and about
// `size` characters, found within `budget` milliseconds: {controls, next, frames, cut}, or null when the document is no longer at `address`. `this` is the
// document. Sensitive ones are absent; of the others: role, name, selector, ref, state and value.
function (address, cursor, limit, size, budget) {
  const document = this;
  const window = dom.view(document);
  const bare = (url) => url.split("#", 1)[0];
  if (!window || bare(window.location.href) !== bare(address)) return null;
  const VALUE = 1_000, OPTION = 128, OPTIONS = 20, LOOKED_AT = 2_000;

  const checked = dom.bound(HTMLInputElement, "checked"), indeterminate = dom.bound(HTMLInputElement, "indeterminate");
  const values = {
    input: dom.bound(HTMLInputElement, "value"), textarea: dom.bound(HTMLTextAreaElement, "value"),
  };
  const optionValue = dom.bound(HTMLOptionElement, "value"), selected = dom.bound(HTMLOptionElement, "selected");
  const label = dom.bound(HTMLOptionElement, "label"), options = dom.bound(HTMLSelectElement, "options");
  const PUSHED = new Set(["button", "submit", "reset", "image"]);
  const TOGGLES = new Set(["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"]);
  const TEXTS = new Set(["textbox", "searchbox", "combobox", "spinbutton"]);

  const fits = (text, most) => (text.length <= most && clean(text) === text ? text : undefined);
  function choices(element) {
    const found = [];
    for (const option of [...options(element)].slice(0, LOOKED_AT)) {
      if (found.length === OPTIONS) break;
      const value = fits(optionValue(option), OPTION);
      if (value === undefined || dom.matches(option, ":disabled") || dom.has(option, "hidden")) continue;
      const group = dom.parentNode(option);
      const hidden = (one) => {
        const style = window.getComputedStyle(one);
        return style.display === "none" || style.visibility !== "visible" || sensitive(one, style) !== "";
      };
      if (hidden(option) || (group !== element && (dom.has(group, "hidden") || hidden(group)))) continue;
      found.push({ value, label: names.tidy(label(option)).slice(0, OPTION), selected: selected(option) });
    }
    return found;
  }
  const truth = (element, key) => ({ true: true, false: false })[dom.attribute(element, key).trim().toLowerCase()];

  function disabled(element) {
    for (let at = element; at; at = dom.composedParent(at)) {
      if (dom.has(at, "inert") || truth(at, "aria-disabled")) return true;
    }
    return dom.matches(element, ":disabled");
  }

  function describe(element, kind) {
    const name = dom.name(element);
    const ref = refs.of(document, element);
    const control = { ref, role: kind, name: names.name(element, kind), selector: path(document, element) || ref };
    if (disabled(element)) control.disabled = true;
    const type = name === "input" ? dom.inputType(element) : "";
    if (type === "checkbox" || type === "radio") {
      if (!indeterminate(element)) control.checked = checked(element);
    } else if (TOGGLES.has(kind)) control.checked = truth(element, "aria-checked");
    else if (name === "select") {
      control.options = choices(element);
      const chosen = [...options(element)].filter((option) => selected(option));
      const value = chosen.length === 1 ? fits(optionValue(chosen[0]), OPTION) : undefined;
      // What is not offered is not told either.
      if (value !== undefined && !sensitive(chosen[0])) control.value = value;
    } else if (values[name] && !PUSHED.has(type)) control.value = fits(values[name](element), VALUE);
    else if (TEXTS.has(kind) && dom.editable(element)) control.value = fits(names.content(element), VALUE);
    return control;
  }

  const controls = [];
  const listed = new Set();
  const frames = new Set();
  const UNREAD = 20;
  let [seen, left, full, cut] = [0, size, false, false];
  function collect(survey) {
    for (const item of survey.items) {
      if (survey.cut || full || cut) return;
      if (item.frame && survey.frame(item)) {
        if (item.survey) collect(item.survey);
        else if (frames.size < UNREAD) frames.add(item.origin);
      }
      if (!item.control || listed.has(item.control) || !survey.box(item.box, item.state)) continue;
      if (controls.length === limit || left <= 0) {
        full = true;
        return;
      }
      // Each is looked for in the whole document, to find its selector. What was found by then is told.
      if (survey.late()) {
        cut = true;
        return;
      }
      listed.add(item.control);
      seen += 1;
      if (seen <= cursor) continue;
      const control = describe(item.control, item.role);
      left -= JSON.stringify(control).length;
      controls.push(control);
    }
  }

  // Pages draw their own boxes: the native one is there, transparent, and its label shows.
  const TICKED = new Set(["checkbox", "radio"]);
  const controlOf = dom.bound(HTMLLabelElement, "control");
  const visit = (element, name, style, state, survey) => {
    if (sensitive(element, style)) return false;
    const role = names.role(element, name);
    if (role && role !== "option") survey.items.push({ control: element, role, box: element, state });
    const named = name === "label" ? controlOf(element) : null;
    if (named && TICKED.has(names.role(named, dom.name(named))) && !sensitive(named)) {
      survey.items.push({ control: named, role: names.role(named, dom.name(named)), box: element, state });
    }
    return !dom.editable(element);
  };
  if (document.designMode === "on") return { controls, next: null, frames: [], cut: false };
  const survey = visible(document, visit, { until: performance.now() + budget });
  collect(survey);
  cut = cut || survey.cut;
  return { controls, next: full || cut ? seen : null, frames: [...frames], cut };
}
