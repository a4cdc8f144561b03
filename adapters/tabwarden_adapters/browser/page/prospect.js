// What pressing or filling in the element that `target` means may lead to: {count, stale, name, inForm, targets,
// leads, downloads}, or null when the document is no longer at `address`. `this` is the document. `targets`: where its
// form may be sent to; null when that cannot be known. What an element does by scripts nobody can tell.
function (address, target) {
  const document = this;
  const window = dom.view(document);
  const bare = (url) => url.split("#", 1)[0];
  if (!window || bare(window.location.href) !== bare(address)) return null;
  const UP = 30, TARGETS = 50, LONG = 8_192, NAME = 1_000;

  const found = find(document, target);
  const [count, stale] = [found.elements.length, found.stale];
  if (count !== 1) return { count, stale, name: null, inForm: null, targets: null, leads: "", downloads: false };
  const element = found.elements[0];

  const baseOf = dom.bound(Node, "baseURI");
  const control = dom.bound(HTMLLabelElement, "control");
  const absolute = (node, said) => {
    try {
      return said.length > LONG ? null : new URL(said, baseOf(node)).href;
    } catch {
      return null;
    }
  };
  const around = [element];
  while (around.length < UP) {
    const next = dom.composedParent(around[around.length - 1]);
    if (!next) break;
    around.push(next);
  }
  const label = around.find((one) => dom.name(one) === "label");
  const labelled = label ? control(label) : null;
  const pressed = labelled ? [labelled, ...around] : around;

  // All that it is called, by itself and by the controls that it is a part of.
  const called = [names.content(element)];
  for (const one of pressed) {
    const role = names.role(one, dom.name(one));
    if (role) called.push(names.name(one, role));
  }
  const name = [...new Set(called)].filter(Boolean).join(" ").slice(0, NAME);

  let form = null;
  for (const one of pressed) form = form || (dom.name(one) === "form" ? one : dom.form(one));
  let targets = [];
  if (form) {
    const said = dom.attribute(form, "action").trim();
    targets.push(said ? absolute(form, said) : bare(dom.view(dom.ownerDocument(form)).location.href));
    const root = dom.root(form);
    const buttons = (dom.type(root) === 9 ? dom.query : dom.rootQuery)(root, "[formaction]");
    for (const button of buttons) {
      if (targets.length > TARGETS) break;
      if (dom.form(button) === form) targets.push(absolute(button, dom.attribute(button, "formaction").trim()));
    }
    targets = targets.length > TARGETS || targets.includes(null) ? null : [...new Set(targets)];
  }

  const link = pressed.find((one) => ["a", "area"].includes(dom.name(one)) && dom.has(one, "href"));
  const leads = link ? absolute(link, dom.attribute(link, "href").trim()) || "" : "";
  const downloads = Boolean(link) && dom.has(link, "download");
  return { count, stale, name, inForm: Boolean(form), targets, leads, downloads };
}
