"""Texts of bounded size: of values that may be huge, and parts of texts that are."""

DIGITS_MAX = 4300  # Python 3.11 and newer refuse more; older ones take minutes for a million
BITS_PER_DIGIT = 3.32


def cut(text, limit):
    """(text, whether something is missing at its end)."""
    return (text[:limit], True) if len(text) > limit else (text, False)


def cut_middle(text, limit):
    """Two thirds of the limit from the beginning, the rest from the end."""
    if len(text) <= limit:
        return text
    head = text[: limit * 2 // 3]
    tail = text[-(limit - len(head)) :]
    return "%s\n[... %d characters left out ...]\n%s" % (
        head,
        len(text) - len(head) - len(tail),
        tail,
    )


def bounded_repr(value, limit):
    """(text, truncated). Of large lists and the like no more than that is made."""
    writer = _Writer(limit)
    try:
        writer.write(value)
    except _Full:
        pass
    return cut("".join(writer.parts), limit)


class _Full(Exception):
    pass


class _Writer:
    """repr of nested built-in containers, piece by piece. All other values write themselves."""

    BRACKETS = {list: "[]", tuple: "()", set: "{}", dict: "{}"}

    def __init__(self, limit):
        self.left = limit
        self.parts = []
        self.open = set()  # containers around this value, for those that contain themselves

    def add(self, text):
        self.parts.append(text)
        self.left -= len(text)
        if self.left < 0:
            raise _Full

    def write(self, value):
        kind = type(value)
        if kind in self.BRACKETS and value:
            self.write_container(value, *self.BRACKETS[kind])
        elif kind in (str, bytes, bytearray) and len(value) > self.left:
            self.add(repr(value[: self.left + 1]))
        elif kind is int and value.bit_length() > DIGITS_MAX * BITS_PER_DIGIT:
            digits = int(value.bit_length() / BITS_PER_DIGIT)
            self.add("<int of about %d digits>" % digits)
        else:
            self.add(repr(value))

    def write_container(self, value, before, after):
        if id(value) in self.open:
            self.add(before + "..." + after)
            return
        self.open.add(id(value))
        self.add(before)
        for i, item in enumerate(value):
            if i:
                self.add(", ")
            self.write(item)
            if type(value) is dict:
                self.add(": ")
                self.write(value[item])
        self.add(",)" if type(value) is tuple and len(value) == 1 else after)
        self.open.remove(id(value))


def type_name(kind):
    """As it is written in code, without the module of what is built in or the code's own."""
    name = getattr(kind, "__qualname__", "?")
    module = getattr(kind, "__module__", None)
    if isinstance(module, str) and module not in ("builtins", "__main__"):
        name = module + "." + name
    return name
