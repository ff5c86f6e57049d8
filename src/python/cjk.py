"""Chinese, Japanese and Korean glyphs in plots, which matplotlib's own font does not have.

The fonts are added behind whatever font a text asks for, so that styles and settings of the code,
and libraries that set them, need not know about this.
"""

# Best first; each of them has the glyphs of more than one of the languages.
FAMILIES = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans CJK KR",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "IPAexGothic",
    "NanumGothic",
    "Unifont",
)
FAMILIES_MAX = 3  # each costs time with every text


def installed(manager):
    """(family, path) of those that are there, as few as are needed."""
    paths = {font.name: font.fname for font in manager.ttflist if font.style == "normal"}
    return [(family, paths[family]) for family in FAMILIES if family in paths][:FAMILIES_MAX]


def add_fonts(font_manager):
    manager = font_manager.fontManager
    find = getattr(manager, "_find_fonts_by_props", None)
    fonts = installed(manager)
    if find:  # matplotlib 3.6 and newer look for each glyph in a list of fonts

        def find_with_more(prop, fontext="ttf", *args, **kwargs):
            found = find(prop, fontext, *args, **kwargs)
            more = [path for _, path in fonts if path not in found] if fontext == "ttf" else []
            return found + more

        manager._find_fonts_by_props = find_with_more
    elif fonts:  # older ones take a whole text from one font, and these have Latin letters too
        from matplotlib import rcParams, rcParamsDefault

        if rcParams["font.family"] == rcParamsDefault["font.family"]:
            rcParams["font.family"] = [fonts[0][0]]
