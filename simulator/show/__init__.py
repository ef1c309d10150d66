"""How results are shown: columns and tables, on the terminal, on a page, in Markdown."""
