// Whether a person could see a field for a password, a card or a one-time code in this document: {reason, cut}, or
// null when the document is no longer at `address`. `this` is the document. `cut`: not all could be looked at
// within `budget` milliseconds.
function (address, budget) {
  const document = this;
  const window = dom.view(document);
  const bare = (url) => url.split("#", 1)[0];
  if (!window || bare(window.location.href) !== bare(address)) return null;
  const REASONS = new Set(["password", "card", "code"]);
  const FIELDS = new Set(["input", "textarea", "select"]);
  const visit = (element, name, style, state, survey) => {
    const reason = sensitive(element, style);
    const field = FIELDS.has(name) || dom.editable(element);
    if (field && REASONS.has(reason)) survey.items.push({ reason, box: element, state });
    return reason === "" || !field;
  };
  function shown(survey) {
    for (const item of survey.items) {
      if (item.frame && item.survey && survey.frame(item)) {
        const inside = shown(item.survey);
        if (inside) return inside;
      }
      if (item.reason && survey.box(item.box, item.state)) return item.reason;
    }
    return "";
  }
  const survey = visible(document, visit, { until: performance.now() + budget });
  return { reason: shown(survey), cut: survey.cut };
}
