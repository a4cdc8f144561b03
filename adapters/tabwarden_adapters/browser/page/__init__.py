"""Fixed scripts that run in pages, in an isolated world. Arguments are passed as values, never spliced.

A file holds one expression. `compose` makes each of its parts a constant, named as its file, that the parts
after it and the script itself can use. Parts:

* `dom`: reading elements past what a page calls its form fields (see the file: `form.id` may be an input);
* `sensitive(element, style) -> "" | reason`: see `sensitive.SENSITIVE`;
* `visible`: what a person could see (see the file);
* `find(document, target) -> {elements, stale}`: what a `selectors.Target` means here;
* `refs`: numbers of elements of this document, see `find.js`.
"""

from importlib.resources import files


def compose(script: str, *parts: str) -> str:
    """A function expression for `Runtime.callFunctionOn`: the function in `script`, with `parts` in scope.

    Only files of this folder, only when the program starts.
    """
    return _within(_source(script), *parts)


def _within(function: str, *parts: str) -> str:
    constants = [f"const {part.removesuffix('.js')} = (\n{_source(part)});" for part in parts]
    return "(() => {\n" + "\n".join(constants) + f"\nreturn (\n{function});\n}})()"


def _source(name: str) -> str:
    return files(__name__).joinpath(name).read_text("utf-8")


# In the order in which they use each other.
_SIGHT = (
    *("dom.js", "sensitive.js", "colours.js", "boxes.js"),
    *("layers.js", "painted.js", "state.js", "visible.js"),
)

READ = compose("read.js", *_SIGHT, "withheld.js", "clean.js")
INSPECT = compose("inspect.js", *_SIGHT, "clean.js", "refs.js", "names.js", "path.js")
SHOWN = compose("shown.js")
WATCH = _source("watch.js")
ACT = compose(
    "act.js",
    *("dom.js", "sensitive.js", "refs.js", "find.js"),
    *("reach.js", "eligible.js", "guard.js", "fields.js", "scroller.js"),
)
SHIELD = _source("shield.js")
# The numbers of elements that were given out (refs.js) mean nothing any more.
FORGET = "delete globalThis.tabwardenRefs"
PROSPECT = compose("prospect.js", *_SIGHT, "clean.js", "refs.js", "names.js", "find.js")
SECRETS = compose("secrets.js", *_SIGHT)
SHOT = compose("shot.js", "dom.js", "sensitive.js", "clean.js", "regions.js")
