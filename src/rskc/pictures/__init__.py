"""The numbers behind pictures: what ``rskc.displays`` and ``rskc.report`` draw (internal).

``models`` asks a fitted model for its cases, distances and names, and computes what a picture of it
shows; ``palette`` has the colors and markers. The picture of a search is its curve, which
``rskc.selection.findings`` describes.
"""
