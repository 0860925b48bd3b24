"""The other side of ExecPython: a process that runs one piece of code after another.

Run as a plain script, `python -I -S _child.py CHANNEL LIFE`, and never imported. It starts in about the time that an
empty interpreter takes, so it imports nothing that the interpreter has not loaded already and speaks marshal, which is
built in: both ends are the same interpreter, and the code has the rights of its user either way.

CHANNEL is a socket. A frame is its length in four bytes and a marshalled value. In come `(path,)` once, then
`(code, inputs)` a call; out go `("log", level, line)` any number of times, then `("done", value, retire)` or
`("fail", message, type, traceback, retire)`; `retire` asks not to be used again. LIFE is a pipe that nobody writes
to: its closing means that the parent died.
"""

import builtins
import io
import marshal
import os
import sys
from _ast import AST
from _thread import allocate_lock, start_new_thread

FILE = "<code>"
ONLY_AST = 0x400  # ast.PyCF_ONLY_AST, without the price of importing ast
NESTING = 200
SCALARS = frozenset({str, int, float, bool, type(None)})
_HINTS = {
    "datetime": "return text, such as its .isoformat()",
    "date": "return text, such as its .isoformat()",
    "Decimal": "return str() or float() of it",
    "UUID": "return str() of it",
    "Path": "return str() of it",
    "PosixPath": "return str() of it",
    "bytes": "return text, such as its .decode()",
    "set": "return a list, such as sorted() of it",
    "frozenset": "return a list, such as sorted() of it",
    "ndarray": "return its .tolist()",
    "coroutine": "the code is no async function: use asyncio.run(…)",
    "generator": "return a list, such as list() of it",
}


class NotJson(Exception):
    """The code returned something that JSON has no word for."""


# --- living and dying -------------------------------------------------------------------------------------


def die_with_parent(life):
    """End this process group when the other end of `life` closes, whatever the code is doing at that moment.

    A thread that reads the pipe would need the interpreter's lock, which a long call into C may hold for minutes. On
    Linux the kernel itself sends SIGIO to the group, and that ends a process.
    """
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(life, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        try:
            os.read(life, 1)
        except BlockingIOError:
            return
        os._exit(1)
    else:
        start_new_thread(lambda: (os.read(life, 1), os._exit(1)), ())


# --- the channel ------------------------------------------------------------------------------------------


class Channel:
    def __init__(self, fd):
        self._fd = fd
        self._reader = open(fd, "rb", closefd=False)  # noqa: SIM115
        self._lock = allocate_lock()

    def receive(self):
        """The next frame; ends the process when there will be none."""
        size = int.from_bytes(self._reader.read(4), "little")
        frame = self._reader.read(size) if size else b""
        if not frame:
            os._exit(0)
        return marshal.loads(frame)

    def send(self, *message):
        body = marshal.dumps(message)
        frame = memoryview(len(body).to_bytes(4, "little") + body)
        with self._lock:
            while frame:
                frame = frame[os.write(self._fd, frame) :]


class Printed(io.TextIOBase):
    """What `print` writes to: every whole line goes to the journal of the run as a line of this level."""

    def __init__(self, channel, level):
        self._channel = channel
        self._level = level
        self._rest = ""

    def writable(self):
        return True

    def write(self, text):
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._channel.send("log", self._level, line)
        return len(text)

    def finish(self):
        if self._rest:
            self.write("\n")


# --- one call ---------------------------------------------------------------------------------------------

_compiled = {}


def compile_body(code, names):
    """The code as the body of a function with these parameters. Lines keep their numbers, strings their text."""
    key = code, names
    if key not in _compiled:
        if stands_indented(code):
            # A line above, taken off again by `lift`: dedenting would change the strings of the code.
            body = lift(compile("if 1:\n" + code, FILE, "exec", ONLY_AST).body[0].body)
        else:
            body = compile(code, FILE, "exec", ONLY_AST).body
        parameters = ", ".join(f"{name}=None" for name in names)
        module = compile(f"def code({parameters}): pass", FILE, "exec", ONLY_AST)
        module.body[0].body = body or module.body[0].body
        if len(_compiled) >= 100:
            _compiled.clear()
        _compiled[key] = compile(module, FILE, "exec")
    return _compiled[key]


def stands_indented(code):
    for line in code.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            return line[0] in " \t"
    return False


def lift(nodes):
    """These nodes and all below them, one line further up."""
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if hasattr(node, "lineno"):
            node.lineno -= 1
            node.end_lineno -= 1
        for name in node._fields:
            part = getattr(node, name, None)
            todo += [each for each in (part if isinstance(part, list) else (part,)) if isinstance(each, AST)]
    return nodes


def run(code, inputs):
    """The answer to a call: ("done", value) or ("fail", message, type, traceback)."""
    try:
        space = {"__builtins__": builtins, "__name__": "code"}
        exec(compile_body(code, tuple(inputs)), space)
        return "done", plain(space["code"](**inputs), "the returned value", 0)
    except NotJson as problem:
        return "fail", str(problem), "NotJson", None
    except BaseException as problem:
        return "fail", *describe(problem, code)


def describe(problem, code):
    """What was raised and in which line of the code, its type, and the traceback without library frames."""
    import linecache
    import traceback

    lines = code.splitlines(keepends=True)
    linecache.cache[FILE] = (len(code), None, lines, FILE)
    shown = traceback.TracebackException.from_exception(problem)
    shown.stack = traceback.StackSummary.from_list([frame for frame in shown.stack if is_own(frame.filename)])
    numbers = [frame.lineno for frame in shown.stack if frame.filename == FILE]
    if not numbers and isinstance(problem, SyntaxError) and problem.filename == FILE:
        numbers = [(problem.lineno or 1) - stands_indented(code)]
        said = f"the code does not compile: {problem.msg}"
    else:
        said = "".join(shown.format_exception_only()).strip()
    if numbers:
        line = lines[numbers[-1] - 1].strip() if 0 < numbers[-1] <= len(lines) else ""
        said += f" (line {numbers[-1]} of the code" + (f": `{line}`)" if line else ")")
    return said, type(problem).__name__, "".join(shown.format()) if shown.stack else None


def is_own(filename):
    """Whether a frame is the author's, and not of a library or of this file."""
    if filename == __file__ or filename.startswith("<frozen"):
        return False
    return not filename.startswith(os.path.dirname(os.__file__)) and "site-packages" not in filename  # noqa: PTH120


def plain(value, where, depth):
    """The value made of nothing but what JSON knows; NotJson names the first part that is something else."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if depth > NESTING:
        raise NotJson(f"{where[:80]}… is nested deeper than {NESTING} levels")
    if isinstance(value, (list, tuple)):
        return [
            item if type(item) in SCALARS else plain(item, f"{where}[{index}]", depth + 1)
            for index, item in enumerate(value)
        ]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise NotJson(
                    f"{where} has the key {key!r:.60}, a {type(key).__name__}; JSON keys are strings: use str() of it"
                )
        return {
            str(key): item if type(item) in SCALARS else plain(item, f"{where}[{key!r}]", depth + 1)
            for key, item in value.items()
        }
    for exact in (str, int, float):
        if isinstance(value, exact):
            return exact(value)
    if kind.__name__ == "coroutine":
        value.close()
    hint = _HINTS.get(kind.__name__, "return strings, numbers, booleans, None, lists and dicts")
    raise NotJson(f"{where} is a {kind.__name__}, which is not JSON; {hint}")


def left_something(started):
    """Whether the code left threads behind, or is a fork of the process that was asked."""
    if os.getpid() != started:
        os._exit(0)
    threading = sys.modules.get("threading")
    return threading is not None and threading.active_count() > 1


def serve(channel):
    started = os.getpid()
    (sys.path[:],) = channel.receive()
    while True:
        code, inputs = channel.receive()
        sys.stdout, sys.stderr = out, err = Printed(channel, "info"), Printed(channel, "warning")
        answer = run(code, inputs)
        del inputs
        retire = left_something(started)
        out.finish()
        err.finish()
        channel.send(*answer, retire)


if __name__ == "__main__":
    fds = [int(number) for number in sys.argv[1:3]]
    for fd in fds:
        os.set_inheritable(fd, False)
    die_with_parent(fds[1])
    serve(Channel(fds[0]))
