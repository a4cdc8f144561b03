// The text that a person could see in this document, from character `offset` on, `limit` at the most, found
// within `budget` milliseconds:
// {text, next, frames, cut}, or null when the document is no longer at `address`. `next` is null at the end,
// `frames` names what was not read, `cut` says that the page was too much work to be read to its end.
// `this` is the document. Nothing of an element but its text is returned: no attributes, no field values.
function (address, offset, limit, budget) {
  const document = this;
  const window = dom.view(document);
  const bare = (url) => url.split("#", 1)[0];
  if (!window || bare(window.location.href) !== bare(address)) return null;
  const UNREAD = 20;  // frames named

  const out = [];
  const frames = new Set();
  let position = 0;  // in characters of the whole text
  let gap = "";  // white space that is owed before the next character
  let full = false;
  const stronger = { "": 0, " ": 1, "\t": 2, "\n": 3, "\n\n": 4 };
  const owe = (white) => { if (stronger[white] > stronger[gap]) gap = white; };
  function put(character) {
    if (position >= offset + limit) full = true;
    else if (position++ >= offset) out.push(character);
  }
  function say(text, preformatted) {
    for (const character of clean(text)) {
      if (full) return;
      const white = character === " " || character === "\t" || character === "\n";
      if (white && !preformatted) owe(" ");
      else {
        if (gap && position > 0) for (const one of gap) put(one);
        gap = "";
        put(character);
      }
    }
  }
  function tell(survey) {
    for (const item of survey.items) {
      if (full || survey.cut) return;
      if (item.text) say(survey.text(item), /^(pre|break-spaces)/.test(item.state.style.whiteSpace));
      else if (item.frame) {
        if (!survey.frame(item)) continue;
        if (item.survey) tell(item.survey);
        else if (frames.size < UNREAD) frames.add(item.origin);
        cut = cut || Boolean(item.survey && item.survey.cut);
      } else owe(item.gap);
    }
  }

  let cut = false;
  if (document.designMode === "on") return { text: "", next: null, frames: [], cut };
  const visit = (element, name, style) => !withheld(element, name, style);
  const survey = visible(document, visit, { until: performance.now() + budget });
  tell(survey);
  cut = cut || survey.cut;
  return { text: out.join(""), next: full || cut ? position : null, frames: [...frames], cut };
}
