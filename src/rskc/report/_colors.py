"""Colors as variables of the style sheet, so that light, dark and print each have their own."""

from __future__ import annotations

from collections.abc import Iterable

from rskc.displays._style import PALETTE

INK, SOFT = "var(--ink)", "var(--soft)"
BLUE, ORANGE = "var(--c0)", "var(--c5)"
DARK_PAPER = "#14171B"
LEAST_CONTRAST = 3.0  # of a mark to the paper (WCAG 2.2, 1.4.11)


def cluster_colors(K: int) -> list[str]:
    """Colors of K clusters, those of the displays; beyond 20 they repeat."""
    return [f"var(--c{k % len(PALETTE)})" for k in range(K)]


def palette_style() -> str:
    """The palette for light and print, and a lighter one for the dark."""
    light, dark = (_variables(colors) for colors in (PALETTE, map(lightened, PALETTE)))
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"


def _variables(colors: Iterable[str]) -> str:
    return "".join(f"--c{k}:{color};" for k, color in enumerate(colors))


def lightened(color: str) -> str:
    """Mix a color with white until it can be told from dark paper."""
    for share in range(101):
        mixed = [round(part + (255 - part) * share / 100) for part in _parts(color)]
        made = "#" + "".join(f"{part:02X}" for part in mixed)
        if contrast(made, DARK_PAPER) >= LEAST_CONTRAST:
            return made
    return "#FFFFFF"


def contrast(a: str, b: str) -> float:
    """Contrast ratio of WCAG, from 1 to 21."""
    dark, light = sorted((_luminance(a), _luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    shares = [part / 255 for part in _parts(color)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _parts(color: str) -> list[int]:
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]
