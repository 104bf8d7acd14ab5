"""Colors and markers of clusters, the same in displays, reports and reproductions."""

from __future__ import annotations

# The first seven are those of Okabe and Ito. The others were picked one by one, each as far as
# possible from those before, among colors neither pale, dark nor shrill. Any two of the twenty are
# at least 17 apart in CIELAB, to normal eyes and to those without red or green cones: no less than
# the closest two of the first seven.
PALETTE = [
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"),
    *("#872D2D", "#A5E196", "#783C5A", "#4B69E1", "#87E1C3", "#2D3CA5", "#692D78"),
    *("#F04B69", "#E1D269", "#7896FF", "#A5A54B", "#69E1F0", "#A51E00"),
]
# One for every seven clusters: beyond seven, color alone is hard to read.
MARKERS = "osDv^"
GRAY = "#8C8C8C"
INK = "#303030"
LEAST_CONTRAST = 3.0  # of a mark to the paper (WCAG 2.2, 1.4.11)


def cluster_colors(K: int) -> list[str]:
    """Return colors of K clusters; beyond 20 they repeat, with other markers."""
    return [PALETTE[k % len(PALETTE)] for k in range(K)]


def cluster_markers(K: int) -> list[str]:
    """Return markers of K clusters: the pair of color and marker is unique up to K = 100."""
    colors = len(PALETTE)
    return [MARKERS[(k % colors // 7 + k // colors) % len(MARKERS)] for k in range(K)]


def mixed(color: str, other: str, share: float) -> str:
    """Mix a color with a share of another."""
    pairs = zip(_parts(color), _parts(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in pairs)


def darker(color: str, share: float = 0.5) -> str:
    """Mix a color with black."""
    return mixed(color, "#000000", share)


def readable_on(paper: str, color: str) -> str:
    """Mix a color with white until it stands out from dark paper."""
    shades = (mixed(color, "#FFFFFF", percent / 100) for percent in range(101))
    return next((made for made in shades if contrast(made, paper) >= LEAST_CONTRAST), "#FFFFFF")


def contrast(a: str, b: str) -> float:
    """Return the contrast ratio of WCAG, from 1 to 21."""
    dark, light = sorted((_luminance(a), _luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    shares = [part / 255 for part in _parts(color)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _parts(color: str) -> list[int]:
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]
