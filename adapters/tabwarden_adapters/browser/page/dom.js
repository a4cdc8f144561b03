// Reading elements without asking the page: `dom.name(node)` and so on. A form hands out its fields, and a
// document its images and frames, under whatever name the page gives them (`<input name="childNodes">`), also
// in an isolated world; only the getters of the prototypes themselves are to be believed.
(() => {
  const bound = (Class, key) => {
    const found = Object.getOwnPropertyDescriptor(Class.prototype, key);
    return Function.prototype.call.bind(found.get || found.value);
  };
  const attributeOf = bound(Element, "getAttribute");
  const hasAttribute = bound(Element, "hasAttribute");
  const localName = bound(Element, "localName");
  const shadowRoot = bound(Element, "shadowRoot");
  const editable = bound(HTMLElement, "isContentEditable");
  const type = bound(Node, "nodeType");
  const parentNode = bound(Node, "parentNode");
  const assignedSlot = bound(Element, "assignedSlot");
  const assignedNodes = bound(HTMLSlotElement, "assignedNodes");
  const childNodes = bound(Node, "childNodes");
  const host = bound(ShadowRoot, "host");
  const HTML = "http://www.w3.org/1999/xhtml";
  const namespace = bound(Element, "namespaceURI");
  const inputType = bound(HTMLInputElement, "type");
  const labels = {
    input: bound(HTMLInputElement, "labels"), textarea: bound(HTMLTextAreaElement, "labels"),
    select: bound(HTMLSelectElement, "labels"), button: bound(HTMLButtonElement, "labels"),
  };
  const forms = {
    input: bound(HTMLInputElement, "form"), textarea: bound(HTMLTextAreaElement, "form"),
    select: bound(HTMLSelectElement, "form"), button: bound(HTMLButtonElement, "form"),
  };
  const textContent = bound(Node, "textContent");
  const nextSibling = bound(Node, "nextSibling");

  const dom = {
    bound,
    type,
    isElement: (node) => type(node) === 1,
    // Lower case, and empty for what is not HTML but has an HTML name.
    name: (element) => (namespace(element) === HTML ? localName(element) : ""),
    anyName: localName,
    svg: (element) => namespace(element) === "http://www.w3.org/2000/svg",
    attribute: (element, key) => attributeOf(element, key) || "",
    has: hasAttribute,
    any: bound(Element, "hasAttributes"),
    inputType,
    textContent,
    nextSibling,
    childNodes,
    shadowRoot,
    parentNode,
    host,
    editable: (element) => namespace(element) === HTML && editable(element),
    labels: (element) => {
      const read = labels[dom.name(element)];
      return read ? [...(read(element) || [])] : [];
    },
    form: (element) => {
      const read = forms[dom.name(element)];
      return read ? read(element) : null;
    },
    children: bound(Element, "children"),
    elementById: bound(Document, "getElementById"),
    rootElementById: bound(DocumentFragment, "getElementById"),
    root: bound(Node, "getRootNode"),
    ownerDocument: bound(Node, "ownerDocument"),
    documentElement: bound(Document, "documentElement"),
    body: bound(Document, "body"),
    view: bound(Document, "defaultView"),
    scrollWidth: bound(Element, "scrollWidth"),
    scrollHeight: bound(Element, "scrollHeight"),
    rect: bound(Element, "getBoundingClientRect"),
    connected: bound(Node, "isConnected"),
    query: bound(Document, "querySelectorAll"),
    rootQuery: bound(DocumentFragment, "querySelectorAll"),
    queryIn: bound(Element, "querySelectorAll"),
    matches: bound(Element, "matches"),
    closest: bound(Element, "closest"),
    // What is drawn inside `node`: its shadow tree, what was assigned to it, or its children.
    composedChildren: (node) => {
      if (type(node) === 1) {
        const shadow = shadowRoot(node);
        if (shadow) return childNodes(shadow);
        if (dom.name(node) === "slot") {
          const assigned = assignedNodes(node);
          if (assigned.length) return assigned;
        }
      }
      return childNodes(node);
    },
    // The element whose shadow tree has this root, or null. Not by `instanceof`: a frame has classes of its own.
    shadowHost: (root) => {
      try {
        return type(root) === 11 ? host(root) : null;
      } catch {
        return null;  // the content of a template
      }
    },
    // The element that `node` is drawn inside, or null at the document.
    composedParent: (node) => {
      const slot = type(node) === 1 ? assignedSlot(node) : textSlot(node);
      const parent = slot || parentNode(node);
      if (!parent || type(parent) === 9) return null;
      return type(parent) === 11 ? dom.shadowHost(parent) : parent;
    },
  };
  const slotOfText = bound(Text, "assignedSlot");
  const textSlot = (node) => (type(node) === 3 ? slotOfText(node) : null);
  return dom;
})()
