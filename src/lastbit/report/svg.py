"""The few pieces of SVG that every picture here is made of, and the look they share.

The colours follow the reader's light or dark scheme. Series differ in lightness, hue and shape or
dashes, so that a picture also works in grey and for colour-blind eyes (the hues are Okabe and
Ito's, darkened or lightened until each stands out from its paper).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias
from xml.sax.saxutils import escape

Scale: TypeAlias = Callable[[float], float]

STYLE = """
  svg { color-scheme: light dark; }
  text { font-family: system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: #1b1f24; }
  .paper { fill: #ffffff; }
  .name { font-size: 21px; font-weight: 650; }
  .title { font-size: 16px; font-weight: 650; }
  .words { font-size: 13.5px; fill: #3d444d; }
  .small { font-size: 12.5px; fill: #3d444d; }
  .over { font-size: 12px; fill: #3d444d; }
  .middle { text-anchor: middle; }
  .end { text-anchor: end; }
  .axis { stroke: #57606a; stroke-width: 1; }
  .grid { stroke: #d8dee4; stroke-width: 1; }
  .zone { fill: #0072b2; fill-opacity: 0.07; }
  .first { fill: #0072b2; stroke: #0072b2; }
  .second { fill: #d55e00; stroke: #d55e00; }
  .outlined { fill: #f8d5bd; stroke-width: 1.6; }
  .stem { stroke-width: 1.6; }
  .hollow { fill: #ffffff; stroke-width: 1.8; }
  .bad { fill: #b3261e; }
  .good { fill: #1a7f37; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f3f6; }
    .paper { fill: #0d1117; }
    .words, .small, .over { fill: #c3cad2; }
    .axis { stroke: #9198a1; }
    .grid { stroke: #2a313a; }
    .zone { fill: #56b4e9; fill-opacity: 0.12; }
    .first { fill: #56b4e9; stroke: #56b4e9; }
    .second { fill: #e69f00; stroke: #e69f00; }
    .hollow { fill: #0d1117; }
    .outlined { fill: #45360f; }
    .bad { fill: #ff8a80; }
    .good { fill: #6fdd8b; }
  }
"""


def document(
    title: str, *, width: int, height: int, style: str = STYLE, lines: Iterable[str]
) -> str:
    """A whole SVG file: the name that a screen reader says, the look, the paper and the marks."""
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-labelledby="name">',
            f'<title id="name">{escape(title)}</title>',
            f"<style>{style}</style>",
            f'<rect class="paper" width="{width}" height="{height}"/>',
            *lines,
            "</svg>\n",
        )
    )


def line(
    kind: str, left: float, top: float, right: float, bottom: float, *, dashes: str = ""
) -> str:
    """A straight line."""
    dashing = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<line class="{kind}" x1="{left:.2f}" y1="{top:.2f}" x2="{right:.2f}" '
        f'y2="{bottom:.2f}"{dashing}/>'
    )


def text(x: float, y: float, kind: str, words: str) -> str:
    """Words at a place."""
    return f'<text class="{kind}" x="{x:.2f}" y="{y:.2f}">{escape(words)}</text>'


def linear(domain: tuple[float, float], target: tuple[float, float]) -> Scale:
    """The affine map that takes one range to the other."""
    factor = (target[1] - target[0]) / (domain[1] - domain[0])
    return lambda value: target[0] + (value - domain[0]) * factor
