"""The pages of the browser's benchmark."""

_LINE = "The quick brown fox jumps over the lazy dog. " * 10
_MEGABYTE = "".join(f"<h2>{number}</h2><p class=text id=p{number}>{_LINE}</p>" for number in range(2_100))
_FORM = "".join(
    f"<label>Field {number} <input name=field{number} value=v{number}></label><button>Save {number}</button>"
    for number in range(250)
)
PAGES = {
    "/small": "<!doctype html><title>small</title><p>A paragraph.</p>",
    "/megabyte": f"<!doctype html><title>megabyte</title>{_MEGABYTE}",
    "/controls": f"<!doctype html><title>controls</title><form>{_FORM}</form>",
}
assert 1_000_000 < len(PAGES["/megabyte"]) < 1_100_000
