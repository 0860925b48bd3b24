"""The newest of three messages wins: sends them, shows what happens, and checks that it did.

    python examples/newest-wins/demo.py

Each message is a `weft run` in a process of its own. A message is sent as soon as the one before it is being
answered. Ends with 0 only if two runs were stopped by tag and one, the newest, answered.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent
WEFT = [sys.executable, "-m", "weft.cli"]
SENDER = "49151@s.whatsapp.net"
MESSAGES = [
    "Hello, where is my order? It should have been here on Tuesday, and now it is Thursday evening.",
    "One more thing: I gave you the wrong house number, it is 12 and not 21. Could that be the reason?",
    "Found it, thanks!",
]
PATIENCE = 60
"""Seconds that a message may take to be picked up or answered, on a slow machine."""

began = time.monotonic()
printing = threading.Lock()


def say(who: str, what: str) -> None:
    with printing:
        print(f"{time.monotonic() - began:5.1f} s  {who}  {what}", flush=True)


class Message(threading.Thread):
    """One message: a `weft run`, and a thread that reads what it prints."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(daemon=True)
        self.who = f"message {number}"
        self.run_id = ""
        self.status = "never ended"
        self.reason = ""
        self.answers: list[str] = []
        self.picked_up = threading.Event()
        say(self.who, f"sent: {text}")
        emitted = json.dumps({"sender": SENDER, "text": text})
        self.process = subprocess.Popen(
            [*WEFT, "run", str(PROJECT), "--json", "--emit", f"message={emitted}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.notes = ""
        """What the command said beside its results; of interest where something went wrong."""

    def run(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        for line in self.process.stdout:
            self.heard(json.loads(line))
        self.notes = self.process.stderr.read()
        self.picked_up.set()

    def heard(self, news: dict[str, Any]) -> None:
        """A line of the run: a log line, or how it ended."""
        if news.get("kind") == "log_line" and news["level"] == "debug":
            self.answers.append(news["text"])
            say(self.who, f"answered: {news['text']}")
        elif news.get("kind") == "log_line":
            say(self.who, news["text"])
            self.picked_up.set()
        elif "status" in news:
            self.run_id, self.status, self.reason = news["run"], news["status"], news.get("reason") or ""
            say(self.who, f"{self.status}{': ' + self.reason if self.reason else ''}")


def weft(*arguments: str) -> None:
    """A command as one would type it, and what it prints."""
    print(f"\n$ weft {' '.join(arguments)}", flush=True)
    subprocess.run([*WEFT, *arguments], stdin=subprocess.DEVNULL, check=False)


def what_went_wrong(messages: list[Message]) -> list[str]:
    """Nothing, if the newest message alone was answered."""
    wrong = []
    runs = [message.run_id for message in messages]
    for at, message in enumerate(messages[:-1]):
        if message.status != "cancelled" or message.answers:
            wrong.append(f"{message.who} is {message.status}, and it should have been stopped")
        elif not any(run in message.reason for run in runs[at + 1 :]):
            wrong.append(f"{message.who} was not stopped by a later one: {message.reason}")
    newest = messages[-1]
    if newest.status != "completed" or len(newest.answers) != 1:
        wrong.append(f"{newest.who} is {newest.status} with {len(newest.answers)} answers, and it should have one")
    return wrong


def main() -> int:
    print(f"Three messages of one sender, each a run of {PROJECT.name}/src/main.weft\n")
    since = datetime.now(UTC).isoformat(timespec="seconds")
    messages: list[Message] = []
    for number, text in enumerate(MESSAGES, 1):
        messages.append(Message(number, text))
        messages[-1].start()
        messages[-1].picked_up.wait(PATIENCE)
    for message in messages:
        message.join(PATIENCE)
        message.process.kill()
    wrong = what_went_wrong(messages)
    if messages[0].run_id:
        weft("executions", "--project", "newest-wins", "--since", since)
        weft("events", messages[0].run_id)
    if wrong:
        print("", *wrong, *(message.notes for message in messages), sep="\n")
        return 1
    print("\nTwo runs were stopped by their sender's tag; the newest answered.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
