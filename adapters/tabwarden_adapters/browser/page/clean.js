// clean(text) -> the characters of it that show. The same as text.py; see there for why.
(() => {
  const INVISIBLE = new RegExp(
    "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5" +
    "\\u180b-\\u180f\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0e\\ufeff" +
    "\\uffa0\\ufff0-\\ufffb\\u{13430}-\\u{1345f}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}" +
    "\\u{e0000}-\\u{e0fff}]",
    "gu",
  );
  const JOINED =
    "\\u0620-\\u065f\\u066e-\\u06d3\\u06d5\\u06ee-\\u06ff\\u0710-\\u07ff\\u0840-\\u08ff\\u0900-\\u0dff" +
    "\\u1000-\\u109f\\u1780-\\u17b3\\u17b6-\\u17d3\\u1820-\\u18aa\\u1b00-\\u1b7f\\ua840-\\ua877\\ua8e0-\\ua8ff" +
    "\\uaa60-\\uaa7f\\u{11000}-\\u{11fff}";
  const EMOJI =
    "\\u00a9\\u00ae\\u203c\\u2049\\u2122\\u2139\\u2190-\\u21ff\\u231a-\\u23ff\\u24c2\\u25aa-\\u25fe" +
    "\\u2600-\\u27bf\\u2934\\u2935\\u2b05-\\u2b55\\u3030\\u303d\\u3297\\u3299\\u{1f000}-\\u{1faff}";
  const LOOSE_STYLE = new RegExp(`(?<![${EMOJI}])(?<![0-9#*](?=\\ufe0f\\u20e3))\\ufe0f`, "gu");
  const LOOSE_JOINER = new RegExp(
    `(?<![${JOINED}])(?<![${EMOJI}\\ufe0f](?=\\u200d))[\\u200c\\u200d]|` +
    `(?<=[${JOINED}])[\\u200c\\u200d](?![${JOINED}])|(?<=[${EMOJI}\\ufe0f])\\u200d(?![${EMOJI}])`,
    "gu",
  );
  const QUICK = /^[\n\t -~]*$/;
  return (text) => {
    if (QUICK.test(text)) return text;
    return text.toWellFormed().replace(INVISIBLE, "").replace(LOOSE_STYLE, "").replace(LOOSE_JOINER, "");
  };
})()
