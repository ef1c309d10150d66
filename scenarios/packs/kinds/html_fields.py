"""Fields of a page's forms, as text: what each shows when the page is opened."""

from __future__ import annotations

from bs4.element import NavigableString, Tag

_TICKED = ("checkbox", "radio")
_SHOW_NOTHING = ("hidden", "password", "file", "image", "color", "range", "submit", "button", "reset")


def write_fields(page: Tag) -> None:
    """Replace the fields by the values that they show; a list without a choice shows all of its options."""
    for field in page.find_all("input"):
        kind = str(field.get("type", "text")).lower()
        if kind in _TICKED:
            field.replace_with(NavigableString(" ☒ " if field.has_attr("checked") else " ☐ "))
        elif kind not in _SHOW_NOTHING and str(field.get("value", "")).strip():
            field.replace_with(NavigableString(f" {field['value']} "))
    for choice in page.find_all("select"):
        chosen = [
            option
            for option in choice.find_all("option")
            if option.has_attr("selected") and not option.has_attr("disabled") and option.get("value") != ""
        ]
        if chosen:
            said = ", ".join(" ".join(option.get_text().split()) for option in chosen)
            choice.replace_with(NavigableString(f" {said} "))
    for options in page.find_all("datalist"):
        options.extract()
    page.smooth()
