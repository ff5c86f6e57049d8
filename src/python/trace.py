"""Exceptions as the caller is told of them: the code's own lines, and nothing of the driver."""

import os
import traceback
import types

from . import hints, text, wire

MESSAGE_MAX = 2000  # characters
TRACEBACK_MAX = 8 * 1024 - 100
HINT_MAX = 1000
# The traceback module shortens what repeats, but looks at all of it: with a raised recursion limit
# there may be a million.
FRAMES_MAX = 2000

_DRIVER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_LIBRARY_PARTS = ("/dist-packages/", "/site-packages/")


def is_library(path):
    is_standard = path.startswith((_LIBRARY, "<frozen "))
    return is_standard or any(part in path for part in _LIBRARY_PARTS)


def own_entries(trace):
    """Those in the code, and the last one, which may be in a library: where it happened."""
    entries = []
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if not path.startswith(_DRIVER):
            if entries and is_library(entries[-1].tb_frame.f_code.co_filename):
                entries.pop()
            entries.append(trace)
        trace = trace.tb_next
    return entries


def shortened(trace):
    """A traceback without frames of the driver, and with few of libraries."""
    entries = own_entries(trace)
    if len(entries) > FRAMES_MAX:
        entries = entries[: FRAMES_MAX // 2] + entries[-FRAMES_MAX // 2 :]
    clean = None
    for entry in reversed(entries):
        clean = types.TracebackType(clean, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return clean


def clean_all(error):
    """The same for the exception and all that it goes back to or is made of."""
    seen, waiting = set(), [error]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = shortened(one.__traceback__)
        waiting += [one.__cause__, one.__context__]
        waiting += getattr(one, "exceptions", ())  # ExceptionGroup of Python 3.11


def message_of(error):
    try:
        return str(error)
    except BaseException:  # methods of the code may raise anything, SystemExit too
        return "<its message could not be made>"


def format_error(error):
    try:
        clean_all(error)
        return "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except BaseException:  # as above, or there is no memory for it
        return "%s: %s\n" % (text.type_name(type(error)), message_of(error))


def describe(error, job):
    """Members of the error frame."""
    members = {
        "type": text.type_name(type(error)),
        "message": text.cut_middle(message_of(error), MESSAGE_MAX),
        "traceback": text.cut_middle(format_error(error), TRACEBACK_MAX),
    }
    if isinstance(error, KeyboardInterrupt) and not members["message"]:
        members["message"] = "interrupted; the time limit is %g s" % job.limit_s
    try:
        members["hint"] = text.cut(hints.find(error, job), HINT_MAX)[0]
    except BaseException:
        members["hint"] = ""
    if not members["hint"]:
        del members["hint"]
    return {name: wire.clean(member) for name, member in members.items()}
