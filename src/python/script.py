"""Compiles and runs code as a notebook would: the value of a last expression is shown, await works
at the top level, names stay from one code to the next.
"""

import ast
import builtins
import inspect
import linecache
import sys
import types
import __future__

# Which of a code's flags the next one inherits, as at an interactive prompt.
FUTURE_FLAGS = 0
for _name in __future__.all_feature_names:
    FUTURE_FLAGS |= getattr(__future__, _name).compiler_flag

VALUE = "<value>"  # no code can use it as a name


class Script:
    """The main module of a runner, and its event loop once one was needed."""

    def __init__(self, display):
        self.display = display
        self.flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self.loop = None
        module = types.ModuleType("__main__")
        self.names = module.__dict__
        self.names.update(__builtins__=builtins, display=display.show)
        sys.modules["__main__"] = module

    def run(self, source, filename):
        source = source.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        lines = [line + "\n" for line in source.split("\n")]
        # Without a time of change the entry is never compared with a file of that name.
        linecache.cache[filename] = (len(source), None, lines, filename)
        tree = self.compile(source, filename, ast.PyCF_ONLY_AST)
        last = keep_value(tree)
        code = self.compile(tree, filename)
        self.flags |= code.co_flags & FUTURE_FLAGS
        self.names.pop(VALUE, None)
        coroutine = eval(code, self.names)
        if code.co_flags & inspect.CO_COROUTINE:
            self.wait_for(coroutine)
        value = self.names.pop(VALUE, None)
        if value is not None:
            self.names["_"] = value
            if not ends_with_semicolon(lines, last):
                self.display.show_value(value)

    def compile(self, source, filename, flags=0):
        return compile(source, filename, "exec", self.flags | flags, dont_inherit=True)

    def wait_for(self, coroutine):
        """In the same loop for all code, so that tasks and connections live on."""
        import asyncio  # takes as long as everything else here together

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(coroutine)
        try:
            self.loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                self.loop.run_until_complete(asyncio.wait([task]))
            raise


def keep_value(tree):
    """Turns a last expression into an assignment to VALUE; returns that statement or None."""
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        return None
    target = ast.copy_location(ast.Name(VALUE, ast.Store()), last)
    tree.body[-1] = ast.copy_location(ast.Assign([target], last.value, None), last)
    return last


def ends_with_semicolon(lines, node):
    """Whether one follows the statement, which hides its value."""
    rest = lines[node.end_lineno - 1].encode("utf-8", "surrogatepass")[node.end_col_offset :]
    return rest.strip().startswith(b";")
