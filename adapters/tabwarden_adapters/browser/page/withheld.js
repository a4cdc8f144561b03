// withheld(element, name, style) -> true for what `read` leaves out: fields, what can be edited, what is sensitive.
// Needs dom.js and sensitive.js.
(() => {
  const FIELDS = new Set(["input", "textarea", "select", "option", "optgroup", "datalist"]);
  const ROLES = new Set(["textbox", "searchbox", "combobox", "spinbutton"]);
  return (element, name, style) => {
    if (FIELDS.has(name) || dom.editable(element)) return true;
    if (ROLES.has(dom.attribute(element, "role").trim().toLowerCase())) return true;
    return sensitive(element, style) !== "";
  };
})()
