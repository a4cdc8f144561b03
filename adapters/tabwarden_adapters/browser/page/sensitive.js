// sensitive(element, style) -> "" or why nothing of this element may be told or touched: one of the reasons of
// SENSITIVE in sensitive.py. `style`: its computed style, if the caller has it. Needs dom.js.
// Judged by what surrounds an element call by call; callers that walk down skip everything inside one.
(() => {
  const words = (text) =>
    text.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/[-_.:/[\]()*\s]+/g, " ").toLowerCase().trim();
  const alone = (list) => new RegExp(`(?:^|[^a-z])(?:${list})(?:[^a-z]|$)`);

  const PASSWORD =
    "pass ?words?|passwd|passwrd|pass ?phrases?|pass ?codes?|pwd|contraseña|mot de passe|passwort|kennwort";
  const CODE =
    "otp|totp|hotp|one ?time ?(?:pass ?)?(?:code|password|passcode|pin)s?|(?:mfa|2fa|tfa|two ?factor|sms|verification|" +
    "authenticator|authentication|auth|confirmation|login|recovery|backup) ?(?:code|token|pin)s?|" +
    "(?:2|two) ?fa|mfa|pin ?code|pin ?number|pin|recovery ?(?:key|phrase)s?|seed ?phrases?|mnemonic|tan";
  const CARD =
    "(?:credit|debit|payment|bank)? ?card ?(?:number|num|no|nr|code|cvv|cvc|csc|verification|security|exp\\w*)|" +
    "(?:credit|debit) ?card|cc ?(?:number|num|no|csc|cvv|cvc|exp\\w*)|cvv2?|cvc2?|csc|security ?code";
  const TOKEN =
    "secrets?|(?:access|auth|api|session|bearer|refresh|id|csrf|xsrf|authenticity|security) ?tokens?|tokens?|(?:api|access|private|secret|signing|encryption|licen[sc]e|ssh|master) ?keys?|apikey|" +
    "credentials?|csrf|xsrf|authenticity|bearer|client ?secret|session ?id|sessid|jwt|captcha ?response";
  const ACCOUNT = "user ?(?:name|id)?|login ?(?:name|id)?|account ?(?:name|id)|uname|userid";

  const RULES = [
    ["password", PASSWORD], ["code", CODE], ["card", CARD], ["token", TOKEN],
  ].map(([reason, list]) => [reason, alone(list), new RegExp(alone(list), "g")]);
  // In a class these are syntax highlighting far more often, in the name of a paragraph a map's pin or a colour.
  const LOOSE_CLASS = /^(?:tokens?|pin|tan|mnemonic|secrets?|mfa|bearer|jwt|csrf|xsrf|authenticity|csc)$/;
  const LOOSE_NAME = /^(?:pin|tan|mnemonic)$/;
  // What these are called is where a link leads to (`<h2 id="reset-password">`).
  const PLACES = new Set("h1 h2 h3 h4 h5 h6 a section article nav main body html form label button".split(" "));
  const account = alone(ACCOUNT);
  const codeForm = alone(
    "otp|totp|2 ?fa|mfa|two ?factor|one ?time|(?:sms|verification|security|login|auth\\w*) ?code|verify ?code");
  const generic = /^(?:code|codes|digit|digits|value|number|input|field|verify|verification|char)?(?: ?\d+)?$/;

  // HTML autofill field names (https://html.spec.whatwg.org/#autofill). Any of the list's tokens counts.
  const AUTOFILL = new Map([
    ["current-password", "password"], ["new-password", "password"], ["one-time-code", "code"],
    ["username", "account"], ["webauthn", "account"],
    ...["name", "given-name", "additional-name", "family-name", "number", "exp", "exp-month", "exp-year", "csc",
      "type"].map((part) => ["cc-" + part, "card"]),
  ]);
  const FIELDS = new Set(["input", "textarea", "select"]);
  const EDITABLE = new Set(["textbox", "searchbox", "combobox", "spinbutton"]);
  // Their label says what they do, not what they hold: `Forgot password?`, `Show password`.
  const NOT_TYPED = new Set(["button", "submit", "reset", "image", "checkbox", "radio", "range", "color"]);
  const NAMES = ["id", "name", "autocomplete", "itemprop", "data-testid", "data-test", "data-qa", "data-cy",
    "data-field", "data-name", "formcontrolname", "ng-model", "v-model"];
  const SPOKEN = ["aria-label", "placeholder", "title", "aria-placeholder"];
  const LABEL_CHARACTERS = 200;  // a label; what is longer is a page's text
  // Names; a class has some hundred characters. What is longer cannot be looked through in the time that there is,
  // so it counts as sensitive.
  const LONG = 10_000;
  const UNREAD = "token";

  const computed = (element) => dom.view(dom.ownerDocument(element)).getComputedStyle(element);

  function named(text) {
    if (text.length > LONG) return UNREAD;
    const said = words(text);
    if (said === "") return "";
    for (const [reason, pattern] of RULES) if (pattern.test(said)) return reason;
    return "";
  }
  function firmlyNamed(text, loose) {
    if (text.length > LONG) return UNREAD;
    const said = words(text);
    if (said === "") return "";
    for (const [reason, , every] of RULES) {
      for (const [found] of said.matchAll(every)) {
        if (!loose.test(found.replace(/[^a-z0-9 ]/g, "").trim())) return reason;
      }
    }
    return "";
  }

  function autofill(element) {
    const text = dom.attribute(element, "autocomplete");
    if (text.length > LONG) return UNREAD;
    for (const token of text.toLowerCase().split(/[\t\n\f\r ]+/)) {
      if (AUTOFILL.has(token)) return AUTOFILL.get(token);
    }
    return "";
  }

  // `element.labels` walks the document each time: with thousands of fields that is most of the work.
  const FRESH_MS = 100;
  const told = new WeakMap();
  function labelsFor(root, id) {
    let known = told.get(root);
    if (!known || performance.now() - known.at > FRESH_MS) {
      known = { at: performance.now(), by: new Map() };
      const all = (dom.type(root) === 9 ? dom.query : dom.rootQuery)(root, "label[for]");
      for (const label of all) {
        const key = dom.attribute(label, "for");
        known.by.set(key, [...(known.by.get(key) || []), label]);
      }
      told.set(root, known);
    }
    return known.by.get(id) || [];
  }

  function labelled(element) {
    const root = dom.root(element);
    const id = dom.attribute(element, "id");
    const around = dom.closest(element, "label");
    const named = id && [9, 11].includes(dom.type(root)) ? labelsFor(root, id) : [];
    const texts = [...(around ? [around] : []), ...named].map(labelText);
    const byId = dom.type(root) === 9 ? dom.elementById : dom.shadowHost(root) && dom.rootElementById;
    for (const key of ["aria-labelledby", "aria-describedby"]) {
      const ids = byId ? dom.attribute(element, key).slice(0, LONG).split(/\s+/).filter(Boolean).slice(0, 8) : [];
      for (const target of ids.map((id) => byId(root, id))) if (target) texts.push(labelText(target));
    }
    return texts;
  }
  const labelText = (label) => dom.textContent(label).slice(0, LABEL_CHARACTERS);

  // watch.js keeps those that ever were one, from the document's first moment on; in shadow trees, which it cannot
  // see, from the first time that somebody looks.
  function isPassword(element) {
    if (dom.name(element) !== "input") return false;
    const known = Object.hasOwn(globalThis, "tabwardenOncePasswords") ? globalThis.tabwardenOncePasswords : null;
    if (dom.inputType(element) !== "password") return Boolean(known) && known.has(element);
    if (known) known.add(element);
    return true;
  }

  const FORM_FIELDS = 200;  // looked at of one form
  function inForm(element, form) {
    const names = [...NAMES, "aria-label", "action", "class"].map((key) => dom.attribute(form, key)).join(" ; ");
    if (names.length > LONG) return UNREAD;
    const said = words(names);
    const own = words(["name", "id"].map((key) => dom.attribute(element, key)).find(Boolean) || "");
    if (generic.test(own) && codeForm.test(said)) return "code";
    // Looked for only where it matters: a form can have thousands of fields.
    const others = () => [...dom.queryIn(form, "input")].slice(0, FORM_FIELDS);
    // One character each, side by side: nobody asks for anything else in that way.
    if (dom.attribute(element, "maxlength") === "1") {
      const single = others().filter((one) => dom.attribute(one, "maxlength") === "1" && !isNotTyped(one));
      if (single.length >= 4) return "code";
    }
    return account.test(own) && others().some(isPassword) ? "account" : "";
  }
  const isNotTyped = (element) => dom.name(element) === "input" && NOT_TYPED.has(dom.inputType(element));

  function ofField(element) {
    if (dom.name(element) === "input") {
      const type = dom.inputType(element);
      if (type === "hidden" || type === "file") return type;
    }
    const filled = autofill(element);
    if (filled) return filled;
    const names = NAMES.map((key) => dom.attribute(element, key)).join(" ; ");
    const byName = isNotTyped(element) ? firmlyNamed(names, LOOSE_NAME) : named(names);
    if (byName || isNotTyped(element)) return isNotTyped(element) && byName === "password" ? "" : byName;
    for (const text of [...SPOKEN.map((key) => dom.attribute(element, key)), ...labelled(element)]) {
      const reason = named(text);
      if (reason) return reason;
    }
    const form = dom.form(element) || dom.closest(element, "form, [role=form], fieldset");
    return form ? inForm(element, form) : "";
  }

  // The tree that it is drawn in: `<secret-input>` around a plain field says what the field is.
  const HOSTS = 8;
  function ofHosts(element) {
    let host = dom.shadowHost(dom.root(element));
    for (let depth = 0; depth < HOSTS && host; depth += 1) {
      const names = [...NAMES, ...SPOKEN, "type"].map((key) => dom.attribute(host, key)).join(" ; ");
      const reason = autofill(host) || named(`${names} ; ${dom.anyName(host)}`);
      if (reason) return reason;
      host = dom.shadowHost(dom.root(host));
    }
    return "";
  }

  return function sensitive(element, style) {
    const name = dom.name(element);
    const field = FIELDS.has(name) || dom.editable(element) ||
      EDITABLE.has(dom.attribute(element, "role").trim().toLowerCase());
    if (field && isPassword(element)) return "password";
    const masked = (style || computed(element)).webkitTextSecurity;
    if (masked && masked !== "none") return "masked";
    if (!field && !dom.any(element)) return "";
    if (dom.has(element, "data-sensitive") || dom.has(element, "data-private")) return "marked";
    if (field) return ofField(element) || ofHosts(element);
    const classes = dom.attribute(element, "class");
    if (classes) {
      const reason = firmlyNamed(classes, LOOSE_CLASS);
      if (reason) return reason;
    }
    if (PLACES.has(name)) return "";
    for (const key of NAMES) {
      if (!dom.has(element, key)) continue;
      const reason = key === "autocomplete" ? autofill(element)
        : firmlyNamed(dom.attribute(element, key), LOOSE_NAME);
      if (reason) return reason;
    }
    return "";
  };
})()
