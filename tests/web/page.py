"""A page as a browser without JavaScript has it: its fields with their labels, and what a button would send."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

Pairs = list[tuple[str, str]]


@dataclass
class Control:
    tag: str
    attributes: dict[str, str | None]
    form: int
    text: str = ""
    options: list[tuple[str, bool, bool]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.attributes.get("name") or ""

    @property
    def kind(self) -> str:
        return self.attributes.get("type") or self.tag


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.controls: list[Control] = []
        self.labels: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.actions: list[str] = []
        self.title = self.language = self.heading = ""
        self.legends: list[str] = []
        self.described: list[tuple[dict[str, str | None], str]] = []
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        assert "style" not in attributes and not any(name.startswith("on") for name in attributes), attributes
        assert tag != "script"
        if tag == "html":
            self.language = attributes["lang"] or ""
        if tag == "form":
            assert attributes["method"] == "post"
            self.actions.append(attributes["action"] or "")
        if tag in ("input", "textarea", "select", "button"):
            self.controls.append(Control(tag, attributes, len(self.actions) - 1))
        if tag == "option":
            chosen, disabled = "selected" in attributes, "disabled" in attributes
            self.controls[-1].options.append((attributes["value"] or "", chosen, disabled))
        if "aria-describedby" in attributes:
            self.described.append((attributes, attributes["aria-describedby"] or ""))
        if tag not in ("input", "meta", "link"):
            self._open.append((tag, attributes))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not self._open:
            return
        tag, attributes = self._open[-1]
        if tag == "title":
            self.title += data
        elif tag == "h1":
            self.heading += data
        elif tag == "label":
            self.labels[attributes["for"] or ""] = data
        elif tag == "legend":
            self.legends.append(data)
        elif tag == "textarea":
            self.controls[-1].text += data
        for _, each in self._open:
            if each.get("id"):
                self.texts[each["id"] or ""] = self.texts.get(each["id"] or "", "") + data

    def control(self, name: str, value: str | None = None) -> Control:
        [found] = [
            each for each in self.controls if each.name == name and value in (None, each.attributes.get("value"))
        ]
        return found

    def sent(self, button: Control, filled: dict[str, str | list[str]]) -> Pairs:
        """What the button would send after somebody has filled this in."""
        pairs: Pairs = []
        for each in self.controls:
            if each.form != button.form or not each.name or "disabled" in each.attributes:
                continue
            given = filled.get(each.name)
            value = each.attributes.get("value") or ""
            match each.kind:
                case "radio" | "checkbox":
                    chosen = "checked" in each.attributes if given is None else value in given
                    pairs += [(each.name, value)] if chosen else []
                case "select":
                    options = [text for text, selected, disabled in each.options if selected and not disabled]
                    assert given is None or given in [text for text, _, _ in each.options]
                    pairs += [(each.name, str(given))] if given is not None else [(each.name, text) for text in options]
                case "textarea":
                    # As a browser does: the first line end is not part of it, and each is sent as two characters.
                    text = each.text.removeprefix("\n") if given is None else str(given)
                    pairs.append((each.name, text.replace("\n", "\r\n")))
                case "text":
                    pairs.append((each.name, value if given is None else str(given)))
                case "submit":
                    pairs += [(each.name, value)] if each is button else []
        return pairs
