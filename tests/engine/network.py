"""The way between a process and its database, in the hands of a test.

async with Network.open(url) as network:
    Database.open(network.url)

Every connection through it can be slowed, held up, cut and refused, by the name that weft gives it ("weft" for the
pool, "weft writer", "weft listener", "weft notifier", "weft death lock"). Messages are never changed, only late or
lost: so a commit can be made whose answer nobody hears.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

SOCKET = ".s.PGSQL.5432"
CHUNK = 64 * 1024
READY = b"Z\0\0\0\5"
"""With which the server ends an answer; one byte follows."""


@dataclass(eq=False)
class Link:
    """One connection: the client's side and the server's. `bound` is the text of the statement that comes next.

    Once `answered` is set, the next whole answer is lost: it is called in its place, and the connection breaks."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    name: str
    prepared: dict[bytes, bytes] = field(default_factory=dict)
    bound: bytes = b""
    answered: Callable[[], None] | None = None

    def cut(self) -> None:
        for side in (self.client, self.server):
            side.transport.abort()


@dataclass
class Network:
    """`longest_delay` is in seconds: each message waits a random part of it, in either direction. `passing` is called
    with each statement before it is passed on, by its connection and its text."""

    url: str
    longest_delay: float = 0
    passing: Callable[[Link, str], None] = lambda _link, _text: None
    choose: random.Random = field(default_factory=random.Random)
    _links: set[Link] = field(default_factory=set)
    _slow: dict[str, float] = field(default_factory=dict)
    _held: dict[str, asyncio.Event] = field(default_factory=dict)
    _traps: dict[str, tuple[bytes, asyncio.Event]] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)
    _counted: Counter[str] = field(default_factory=Counter)

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, *, longest_delay: float = 0) -> AsyncIterator[Network]:
        parts = urlsplit(url)
        folder = Path(tempfile.mkdtemp(prefix="weft-network-"))
        through = urlunsplit(parts._replace(query=f"host={quote(str(folder), safe='')}&port=5432"))
        network = cls(through, longest_delay)
        real = f"{parse_qs(parts.query)['host'][0]}/{SOCKET}"
        tasks: set[asyncio.Task[None]] = set()

        async def arrived(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await network._carry(reader, writer, real)
            writer.transport.abort()
            tasks.discard(task)

        server = await asyncio.start_unix_server(arrived, folder / SOCKET)
        try:
            yield network
        finally:
            server.close()
            for task in list(tasks):
                task.cancel()
            shutil.rmtree(folder)

    # --- what a test does ---------------------------------------------------------------------------------

    def slow(self, name: str, seconds: float = 0.3) -> None:
        """From now on each answer to these connections is so late, until `let_go`: time to see what a statement
        did, and to `hold` before whoever sent it hears."""
        self._slow[name] = seconds

    def hold(self, name: str) -> None:
        """From now on these connections hear nothing more of the server, which goes on hearing them."""
        self._held.setdefault(name, asyncio.Event())

    def let_go(self, name: str) -> None:
        """What was held up arrives, and nothing is slow any more."""
        self._slow.pop(name, None)
        if held := self._held.pop(name, None):
            held.set()

    def hold_at(self, name: str, words: str) -> asyncio.Event:
        """As `hold`, from when a statement with these words is sent to be carried out; that sets the event."""
        self._traps[name] = (words.encode(), asyncio.Event())
        return self._traps[name][1]

    def cut(self, name: str | None = None) -> int:
        """Break these connections (None: all), and lose what was held up on them. How many there were."""
        links = [link for link in self._links if name in (None, link.name)]
        for link in links:
            link.cut()
        return len(links)

    def refuse(self, *names: str) -> None:
        """Break these connections and let none be opened again."""
        self._refused.update(names)
        for name in names:
            self.cut(name)

    def admit(self, *names: str) -> None:
        """These connections may be opened again."""
        self._refused.difference_update(names)

    def statements(self) -> int:
        """How many statements have gone to the server: what was sent to be carried out, by itself or as one of many."""
        return self._counted.total()

    # --- carrying -----------------------------------------------------------------------------------------

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, real: str) -> None:
        size = await reader.readexactly(4)
        hello = size + await reader.readexactly(int.from_bytes(size) - 4)
        words = hello[8:].split(b"\0")
        name = words[words.index(b"application_name") + 1].decode()
        if name in self._refused:
            return
        from_server, to_server = await asyncio.open_unix_connection(real)
        link = Link(writer, to_server, name)
        self._links.add(link)
        try:
            to_server.write(hello)
            there = asyncio.create_task(self._requests(reader, link))
            back = asyncio.create_task(self._answers(from_server, link))
            try:
                await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
            finally:
                there.cancel()
                back.cancel()
                await asyncio.gather(there, back, return_exceptions=True)
        finally:
            self._links.discard(link)
            link.cut()

    async def _requests(self, reader: asyncio.StreamReader, link: Link) -> None:
        while True:
            head = await reader.readexactly(5)
            rest = await reader.readexactly(int.from_bytes(head[1:]) - 4)
            if head[:1] in (b"E", b"Q"):
                self._counted[link.name] += 1
                text = link.bound if head[:1] == b"E" else rest.rstrip(b"\0")
                self.passing(link, text.decode())
            elif head[:1] == b"P":
                statement, query, *_ = rest.split(b"\0", 2)
                link.prepared[statement] = query
            elif head[:1] == b"B":
                statement = rest.split(b"\0", 2)[1]
                link.bound = link.prepared.get(statement, b"")
                self._spring(link, statement)
            await self._dawdle()
            link.server.write(head + rest)

    def _spring(self, link: Link, statement: bytes) -> None:
        words, sprung = self._traps.get(link.name, (b"", None))
        if sprung is not None and words in link.prepared.get(statement, b""):
            del self._traps[link.name]
            self.hold(link.name)
            sprung.set()

    async def _answers(self, reader: asyncio.StreamReader, link: Link) -> None:
        while data := await reader.read(CHUNK):
            await self._dawdle()
            await asyncio.sleep(self._slow.get(link.name, 0))
            while held := self._held.get(link.name):
                await held.wait()
            if link.answered is None:
                link.client.write(data)
            elif data[-6:-1] == READY:
                link.answered()
                link.cut()

    async def _dawdle(self) -> None:
        if self.longest_delay:
            await asyncio.sleep(self.choose.choice((0, 0, self.choose.random())) * self.longest_delay)
