"""Templates whose time and size are bounded: Jinja's, in its sandbox, with an allowance of work.

The sandbox keeps a template from files, code and the environment, but not from making ten gigabytes of a
letter. So each step, and each text or list that a template makes, is paid for before it is made. Functions
without a price known beforehand (`format`) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from typing import Any

from jinja2 import StrictUndefined, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

_ALLOWANCE = 1 << 26
"""Characters, items and steps that filling in a template may take."""
_STEP = 64
"""Cost of a step of a loop, and of an item of a list."""
_CALL = 512
"""Cost of a call: macros can call themselves."""
_MOST_BITS = 4096
_COUNTED, _CONCATENATED = "hallulab_counted", "hallulab_concatenated"
_LEFT_OUT = frozenset({"format", "pprint", "urlize", "xmlattr"})
"""Filters without a price."""

_left: ContextVar[list[int]] = ContextVar("left")
"""Rest of the allowance of the template that is being filled in."""


def _pay(work: int) -> None:
    left = _left.get()
    left[0] -= work
    if left[0] < 0:
        raise SecurityError("it takes too much time or makes too long a text")


def _measure(value: Any) -> int:
    """Return the characters and items in a value, paid for as they are counted: lists may share items."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if not isinstance(value, list | tuple | set | frozenset):
        return 1
    _pay(_STEP * len(value))
    return len(value) + sum(map(_measure, value))


def _pay_for(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a function, and pay for the product of its arguments before, which `replace` may make."""
    given = [*arguments, *named.values()]
    work = 1
    for one in given:
        work *= max(1, abs(one) if isinstance(one, int) else _measure(one))
        if work > _ALLOWANCE:
            break
    _pay(work + _CALL)
    return function(*arguments, **named)


def _count(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        _pay(_STEP)
        yield item


def _concatenate(parts: Iterable[Any]) -> str:
    found = list(parts)
    _pay(_measure(found))
    return "".join(map(str, found))


def _finish(value: Any) -> Any:
    _pay(_measure(value))
    return value


class _Metered(NodeTransformer):
    """Makes loops and `~`, which the sandbox does not see, go through filters."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, _COUNTED, [], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(parts, _CONCATENATED, [], [], None, None, lineno=node.lineno)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def _generate(self, source: nodes.Template, *arguments: Any, **named: Any) -> str:
        return super()._generate(_Metered().visit(source), *arguments, **named)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """See `SandboxedEnvironment`."""
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if operator == "%" and not numbers:
            raise SecurityError("`%` is for numbers; join texts by `~`")
        if operator == "+" or (numbers and operator == "%"):
            _pay(_measure(left) + _measure(right))
        elif numbers:
            factor = right if operator == "**" else 1
            bits = (int(left).bit_length() + (0 if operator == "**" else int(right).bit_length())) * factor
            if bits > _MOST_BITS:
                raise SecurityError("it makes too large a number")
        else:
            return _pay_for(partial(super().call_binop, context, operator), left, right)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, called: Any, *arguments: Any, **named: Any) -> Any:
        """See `SandboxedEnvironment`."""
        owner = getattr(called, "__self__", None)
        of_value = isinstance(owner, str | bytes | list | tuple | dict)
        _pay_for(lambda *_, **__: None, *((owner,) if of_value else ()), *arguments, **named)
        return super().call(context, called, *arguments, **named)

    def wrap_str_format(self, value: Any) -> None:
        """See `SandboxedEnvironment`."""
        if getattr(value, "__name__", "") in ("format", "format_map") and callable(value):
            raise SecurityError("`format` is not there; join texts by `~`")


def _price(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that is paid for; what Jinja hands to it besides costs nothing."""
    handed = getattr(function, "jinja_pass_arg", None) is not None

    def paid(*arguments: Any, **named: Any) -> Any:
        first, rest = (arguments[:1], arguments[1:]) if handed else ((), arguments)
        return _pay_for(partial(function, *first), *rest, **named)

    if handed:
        paid.jinja_pass_arg = function.jinja_pass_arg  # type: ignore[attr-defined]
    return paid


@cache
def _make_environment() -> _Environment:
    # Bodies are JSON or other text, never HTML; `tojson` escapes what stands in JSON. Nothing is worked out
    # when a template is read, where nothing is paid for.
    made = _Environment(
        autoescape=False,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        optimized=False,
        finalize=_finish,
    )
    made.filters = {name: _price(one) for name, one in made.filters.items() if name not in _LEFT_OUT}
    made.filters |= {_COUNTED: _count, _CONCATENATED: _concatenate}
    del made.globals["lipsum"]
    return made


def fill_in_text(template: str, variables: Mapping[str, Any]) -> str:
    """Return a template filled in.

    Raises:
        ValueError: the template is wrong, or takes too much; says why.
    """
    with _within_bounds():
        return _make_environment().from_string(template).render(variables)


def evaluate(expression: str, variables: Mapping[str, Any]) -> Any:
    """Return the value of an expression; raises like `fill_in_text`."""
    with _within_bounds():
        compiled = _make_environment().compile_expression(expression, undefined_to_none=False)
        found = compiled(variables)
        # As a text, an undefined value is an error.
        return str(found) if isinstance(found, StrictUndefined) else _finish(found)


@contextmanager
def _within_bounds() -> Iterator[None]:
    token = _left.set([_ALLOWANCE])
    try:
        yield
    except Exception as error:
        kind = "" if isinstance(error, TemplateError) else f"{type(error).__name__}: "
        raise ValueError(f"a template is wrong: {kind}{' '.join(str(error).split())[:200]}") from error
    finally:
        _left.reset(token)
