"""What to do about the exceptions that code for a notebook or for another machine meets here."""

import importlib.util
import os

# Packages that code asks for, as imported, and their names where those differ.
KNOWN = {
    "numpy": "",
    "pandas": "",
    "matplotlib": "",
    "scipy": "",
    "PIL": "Pillow",
    "sklearn": "scikit-learn",
    "seaborn": "",
    "statsmodels": "",
    "sympy": "",
    "networkx": "",
    "openpyxl": "",
    "xlrd": "",
    "lxml": "",
    "bs4": "beautifulsoup4",
    "requests": "",
    "docx": "python-docx",
    "pypdf": "",
    "PyPDF2": "",
    "yaml": "PyYAML",
    "cv2": "opencv-python",
}
NAMES_MAX = 10


def installed():
    """Those of KNOWN that are there, as in: numpy, PIL (Pillow)."""
    names = []
    for name, package in KNOWN.items():
        try:
            found = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            found = None
        if found:
            names.append("%s (%s)" % (name, package) if package else name)
    return names


def about_module(error, job):
    if "backend" in str(error):
        return "There is no screen: leave matplotlib's backend as it is; plt.show() shows figures."
    missing = (error.name or "").partition(".")[0]
    if missing == "IPython":
        return "display() is there without an import, and plots are shown by plt.show()."
    for name, package in KNOWN.items():
        if missing and missing.lower().replace("_", "-") == package.lower():
            return "%s is imported as: import %s" % (package, name)
    return (
        "Installed are, besides the standard library: %s. pip cannot download anything: "
        "the sandbox has no network." % (", ".join(installed()) or "none of the usual packages")
    )


def about_file(error, job):
    names = sorted(os.listdir("."), key=lambda name: (name not in job.inputs, name))
    names = [name for name in names if not name.startswith(".")]
    listed = ", ".join(names[:NAMES_MAX]) or "nothing"
    more = " and %d more" % (len(names) - NAMES_MAX) if len(names) > NAMES_MAX else ""
    return "In the working directory %s there is: %s%s." % (os.getcwd(), listed, more)


def about_permission(error, job):
    if error.filename in job.inputs:
        return "%s is an input, and read-only: write to a file of another name." % error.filename
    return ""


def about_encoding(error, job):
    return "The text is not UTF-8: try encoding=\"gb18030\", \"latin-1\" or \"utf-16\"."


def about_network(error, job):
    words = ("name resolution", "not known", "unreachable")  # of the resolver and the system
    if any(word in str(error) for word in words):
        return (
            "There is no internet in the sandbox, and trying again will not help. Ask the person "
            "for the file (upload_file), or use data that installed packages bring along."
        )
    return ""


def about_syntax(error, job):
    line = (error.text or "").lstrip()
    if line.startswith("```"):
        return "Send the code without the lines that begin with ```."
    if line[:1] in ("%", "!"):
        return "This is plain Python: there are no notebook commands that begin with % or !."
    return ""


def about_name(error, job):
    if "'__file__'" in str(error):
        return "The code lies in no file; relative paths begin at the working directory."
    if not job.session:
        return "Nothing is left of earlier calls: variables last only with session_id."
    return ""


def about_loop(error, job):
    if "running event loop" in str(error):
        return "Code that uses await at the top level runs in an event loop: await instead."
    return ""


def about_input(error, job):
    return "Nobody can answer input(): put the values into the code."


def about_memory(error, job):
    if error.__traceback__ is None:  # none of the code's lines ran: it was compiled, or shown
        return "The code is nested too deeply for Python's parser, or the memory is used up."
    return "The sandbox's memory is used up: read or compute in parts, or use smaller types."


TABLE = (
    (ImportError, about_module),
    (FileNotFoundError, about_file),
    (PermissionError, about_permission),
    (OSError, about_network),
    (UnicodeDecodeError, about_encoding),
    (SyntaxError, about_syntax),
    (NameError, about_name),
    (RuntimeError, about_loop),
    (EOFError, about_input),
    (MemoryError, about_memory),
)


def find(error, job):
    """A hint, or an empty text."""
    for kind, function in TABLE:
        if isinstance(error, kind):
            return function(error, job)
    return ""
