"""A fitted model as one HTML page that explains itself, and opens without a network.

::

    from rskc.report import make_report

    make_report(model, X, searches=[clest]).save("report.html")

The way there: model and data -> a plain summary (``Report.summary``, a dict of numbers and words)
-> charts (Vega-Lite) and a template -> the page. jinja2 and vl-convert-python, the extra
``report``, are imported when a page is made and not before.
"""

from rskc.report._summary import numbers_of, summarize, to_keep
from rskc.report._words import advise
from rskc.report.page import Report, make_report

__all__ = ["Report", "advise", "make_report", "numbers_of", "summarize", "to_keep"]
