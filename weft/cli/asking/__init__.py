"""Asking forms on the terminal: `editor` reads and edits one line, `questions` asks the fields of a form."""
