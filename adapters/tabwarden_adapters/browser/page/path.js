// path(document, element) -> a selector that only this element matches, within the subset of selectors.py; or ""
// when none is found: something in a shadow tree or a frame, or too deep. Needs dom.js.
(() => {
  const CHARACTERS = 400, LEVELS = 20;
  const WORD = /^[A-Za-z_][\w-]{0,63}$/;  // what needs no escape, and is not a number that was made up for the day
  const TAG = /^[a-z][a-z0-9-]{0,63}$/;
  const TOLD = ["data-testid", "data-test", "data-cy", "data-qa", "name"];

  return (document, element) => {
    if (dom.root(element) !== document) return "";
    const only = (selector) => {
      const found = dom.query(document, selector);
      return found.length === 1 && found[0] === element;
    };
    const id = dom.attribute(element, "id");
    if (WORD.test(id) && only(`#${id}`)) return `#${id}`;
    const tag = dom.name(element);
    for (const key of TAG.test(tag) ? TOLD : []) {
      const value = dom.attribute(element, key);
      const selector = `${tag}[${key}="${value}"]`;
      if (/^[\w.:[\]-]{1,64}$/.test(value) && only(selector)) return selector;
    }
    let built = "";
    let at = element;
    for (let level = 0; level < LEVELS && at && dom.type(at) === 1; level += 1) {
      const name = dom.anyName(at);
      if (!TAG.test(name)) return "";
      const key = dom.attribute(at, "id");
      if (level > 0 && WORD.test(key) && dom.query(document, `#${key}`).length === 1) {
        const selector = `#${key} > ${built}`;
        return selector.length <= CHARACTERS && only(selector) ? selector : "";
      }
      const around = dom.parentNode(at);
      const siblings = around && dom.type(around) === 1 ? [...dom.children(around)] : [at];
      const alike = siblings.filter((one) => dom.anyName(one) === name);
      const step = alike.length > 1 ? `${name}:nth-of-type(${alike.indexOf(at) + 1})` : name;
      built = built ? `${step} > ${built}` : step;
      if (built.length > CHARACTERS) return "";
      if (only(built)) return built;
      at = around;
    }
    return "";
  };
})()
