"""Plots as trees of SVG: axes, lines and stacked bars, and nothing that has to be fetched or run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, SubElement

WIDTH: Final = 1000
HEIGHT: Final = 240
_LEFT: Final = 64
_RIGHT: Final = 12
_TOP: Final = 14
_BOTTOM: Final = 34
_TICKS: Final = 5


@dataclass(frozen=True, slots=True)
class Scale:
    """Values to pixels. A logarithmic one has only positive values."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log10(low), math.log10(high), math.log10(max(value, self.low))
        return self.start + (self.end - self.start) * (value - low) / ((high - low) or 1)

    def ticks(self) -> list[float]:
        """Round values within the scale."""
        if self.logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            return [10.0**power for power in powers if self.low <= 10.0**power <= self.high]
        rough = (self.high - self.low) / _TICKS or 1
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


class Chart:
    """One plot in `parent`. Values are given in the units of its axes."""

    def __init__(
        self,
        parent: Element,
        *,
        x: tuple[float, float],
        y: tuple[float, float],
        x_title: str,
        y_title: str,
        logarithmic: bool = False,
        x_labels: Sequence[tuple[float, str]] | None = None,
    ) -> None:
        self.x = Scale(*x, _LEFT, WIDTH - _RIGHT)
        self.y = Scale(*y, HEIGHT - _BOTTOM, _TOP, logarithmic)
        self.svg = SubElement(
            parent, "svg", viewBox=f"0 0 {WIDTH} {HEIGHT}", width=str(WIDTH), height=str(HEIGHT), role="img"
        )
        for value in self.y.ticks():
            at = self.y(value)
            self._guide(_LEFT, at, WIDTH - _RIGHT, at)
            self._label(_LEFT - 6, at + 4, short(value), "end")
        for value, text in x_labels or [(tick, short(tick)) for tick in self.x.ticks()]:
            at = self.x(value)
            self._label(at, HEIGHT - _BOTTOM + 16, text, "middle" if at < WIDTH - 2 * _RIGHT else "end")
        self._label(WIDTH - _RIGHT, HEIGHT - 2, x_title, "end")
        self._label(2, _TOP - 3, y_title, "start")

    def line(self, points: Sequence[tuple[float, float | None]], kind: str, title: str) -> None:
        """A line of class `kind`, interrupted where there is no value."""
        pieces, pen = [], "M"
        for x, y in points:
            if y is None:
                pen = "M"
                continue
            # A piece of no length is a dot, with round ends: one value between two gaps is seen too.
            pieces.append(f"{pen}{self.x(x):.1f} {self.y(y):.1f}" + ("h0" if pen == "M" else ""))
            pen = "L"
        path = SubElement(self.svg, "path", {"d": " ".join(pieces) or "M0 0", "class": f"line {kind}"})
        SubElement(path, "title").text = title

    def level(self, value: float, title: str) -> None:
        """A dashed line across."""
        at = self.y(value)
        line = self._guide(_LEFT, at, WIDTH - _RIGHT, at)
        line.set("class", "level")
        SubElement(line, "title").text = title
        self._label(WIDTH - _RIGHT, at - 4, title, "end")

    def bars(self, until: Sequence[float], stacks: Sequence[Sequence[tuple[float, str, str]]]) -> None:
        """A stack of (height, class, title) for each piece that ends at `until`, the lowest first."""
        left = self.x.low
        for right, stack in zip(until, stacks, strict=True):
            base = 0.0
            for height, kind, title in stack:
                if height <= 0:
                    continue
                top, bottom = self.y(base + height), self.y(base)
                bar = SubElement(
                    self.svg,
                    "rect",
                    x=f"{self.x(left):.1f}",
                    y=f"{top:.1f}",
                    width=f"{max(self.x(right) - self.x(left) - 0.5, 0.5):.1f}",
                    height=f"{bottom - top:.1f}",
                )
                bar.set("class", kind)
                SubElement(bar, "title").text = title
                base += height
            left = right

    def _guide(self, x1: float, y1: float, x2: float, y2: float) -> Element:
        ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        places = {name: f"{value:.1f}" for name, value in ends.items()}
        return SubElement(self.svg, "line", {**places, "class": "guide"})

    def _label(self, x: float, y: float, text: str, anchor: str) -> None:
        place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor, "class": "soft"}
        SubElement(self.svg, "text", place).text = text


def short(value: float) -> str:
    """A number with as many digits as it needs."""
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.3g}"
