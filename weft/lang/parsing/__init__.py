"""The parts of the parser, each of which knows nothing of lark: `weft.lang.parser` puts them together.

`tokens` and `lexer` read words, `tables` runs the grammar's tables, `building`, `literals` and `shape` make the tree,
`scopes` looks at whole scopes, `mistake`, `explain`, `explain_json`, `words` and `recovery` deal with errors.
"""
