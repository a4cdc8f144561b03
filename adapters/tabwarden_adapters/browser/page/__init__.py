"""Fixed scripts that run in pages, in an isolated world. Arguments are passed as values, never spliced."""

from importlib.resources import files


def _script(name: str) -> str:
    return files(__name__).joinpath(name).read_text("utf-8")


READ = _script("read.js")
SHOWN = _script("shown.js")
