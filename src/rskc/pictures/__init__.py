"""The numbers behind pictures: what ``rskc.displays`` and ``rskc.report`` draw (internal).

``cases`` asks a fitted model for its cases, their distances and all names; ``models`` computes
what a picture of a model shows; ``palette`` has the colors and markers. What the picture of a
search shows is the table of the search.
"""
