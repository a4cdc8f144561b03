// find(document, target) -> {elements, stale}: the elements that `target`, an argument made by
// selectors.target, means in this document: {css} or {document, number}. `stale`: the number was given out by
// another document, or what it meant is no longer there. Needs dom.js and refs.js.
// A number can mean what no selector reaches: something in an open shadow tree or a frame of this origin.
(document, target) => {
  if (typeof target.css === "string") return { elements: [...dom.query(document, target.css)], stale: false };
  const element = refs.get(document, target.document, target.number);
  return { elements: element ? [element] : [], stale: !element };
}
