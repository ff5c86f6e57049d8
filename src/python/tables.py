"""Frames and series of pandas: a text of bounded size, and files with the rest."""

import sys

ROWS_MAX = 30
COLUMNS_MAX = 20
WIDTH_MAX = 80  # characters of one cell
# Writing takes a second for about a million cells as CSV, for about fifty thousand as HTML.
CSV_CELLS_MAX = 500 * 1000
HTML_CELLS_MAX = 20 * 1000


def is_table(value):
    pandas = sys.modules.get("pandas")
    kinds = (getattr(pandas, "DataFrame", None), getattr(pandas, "Series", None))
    return pandas is not None and isinstance(value, tuple(kind for kind in kinds if kind))


def to_text(table):
    if table.ndim == 1:
        return table.to_string(max_rows=ROWS_MAX, dtype=True, name=True, length=True)
    return table.to_string(
        max_rows=ROWS_MAX,
        max_cols=COLUMNS_MAX,
        max_colwidth=WIDTH_MAX,
        show_dimensions=True,
    )


def describe(table):
    return " ".join([type(table).__name__, " x ".join(str(size) for size in table.shape)])


def save(table, saver):
    """When it is larger than what is shown of it."""
    rows = table.shape[0]
    columns = table.shape[1] if table.ndim > 1 else 1
    if rows <= ROWS_MAX and columns <= COLUMNS_MAX:
        return
    about = describe(table)
    if rows * columns > CSV_CELLS_MAX:
        saver.note("%s is too large to be saved by itself; to_csv writes it." % about)
        return
    try:
        saver.save("table", ".csv", to_bytes(table.to_csv()), about)
        if rows * columns <= HTML_CELLS_MAX:
            frame = table if table.ndim > 1 else table.to_frame()
            saver.save("table", ".html", to_bytes(frame.to_html()), about)
    except Exception as error:  # cells may be anything
        saver.note("%s could not be saved: %s." % (about, type(error).__name__))


def to_bytes(text):
    return text.encode("utf-8", "backslashreplace")
