"""Colors and markers of clusters, the same in displays, reports and reproductions."""

# The first seven are those of Okabe and Ito. The others were picked one by one, each as far as
# possible from those before, among colors neither pale, dark nor shrill. Any two of the twenty are
# at least 17 apart in CIELAB, to normal eyes and to those without red or green cones: no less than
# the closest two of the first seven.
PALETTE = [
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"),
    *("#872D2D", "#A5E196", "#783C5A", "#4B69E1", "#87E1C3", "#2D3CA5", "#692D78"),
    *("#F04B69", "#E1D269", "#7896FF", "#A5A54B", "#69E1F0", "#A51E00"),
]
# On dark paper, the five that would be too dark are mixed with white until the contrast is 3 (WCAG
# 2.2, 1.4.11).
DARK_PALETTE = [
    *PALETTE[:7],
    *("#9A4F4F", "#A5E196", "#88536E", "#4B69E1", "#87E1C3", "#515DB4", "#82518F"),
    *(*PALETTE[14:19], "#B13B21"),
]
# One for every seven clusters: beyond seven, color alone is hard to read.
MARKERS = "osDv^"
GRAY = "#8C8C8C"
INK = "#303030"


def cluster_colors(K: int) -> list[str]:
    """Return colors of K clusters; beyond 20 they repeat, with other markers."""
    return [PALETTE[k % len(PALETTE)] for k in range(K)]


def cluster_markers(K: int) -> list[str]:
    """Return markers of K clusters: the pair of color and marker is unique up to K = 100."""
    colors = len(PALETTE)
    return [MARKERS[(k % colors // 7 + k // colors) % len(MARKERS)] for k in range(K)]
