"""Make the verbs of `hallulab.api`: functions of their commands' options, to call and to await."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import re
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from hallulab.scenarios.arguments import check_given
from hallulab.scenarios.turn_views import TurnView
from hallulab.simulator.options.groups import list_fields

Parameters = ParamSpec("Parameters")
Options = TypeVar("Options")
Result = TypeVar("Result")
First = TypeVar("First")

_FLAG = re.compile(r"--([a-z]+)")


def wait_for(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run the coroutine in an event loop in its own thread, wait, and return its result or raise its error.

    Raises:
        KeyboardInterrupt: Ctrl-C came, or the kernel was interrupted. The coroutine was cancelled and has
            ended. A second interrupt does not wait for that.
    """
    result: Future[Result] = Future()
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def begin() -> Result:
        task = asyncio.current_task()
        assert task is not None
        begun.set_result((asyncio.get_running_loop(), task))
        return await coroutine

    def work() -> None:
        try:
            result.set_result(asyncio.run(begin()))
        except BaseException as raised:  # noqa: BLE001 - whatever it is, it is raised where it is waited for
            result.set_exception(raised)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    try:
        return result.result()
    except KeyboardInterrupt:
        if not result.done():
            loop, task = begun.result()
            with suppress(RuntimeError):  # the loop was closed just now
                loop.call_soon_threadsafe(task.cancel)
            thread.join()
        raise


def make_verb(
    options: Callable[Parameters, Options],
) -> Callable[
    [Callable[[Options], Coroutine[Any, Any, Result]]], Callable[Parameters, Coroutine[Any, Any, Result]]
]:
    """Return a decorator for a verb's work: the verb takes the fields of its options, one by one.

    Its docstring is that of the work, with the options added.

    Args:
        options: the dataclass that the verb's command reads, too.
    """
    return partial(_make_verb, options)


def _make_verb(
    options: Callable[Parameters, Options], work: Callable[[Options], Coroutine[Any, Any, Result]]
) -> Callable[Parameters, Coroutine[Any, Any, Result]]:
    name = work.__name__

    async def verb(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            given = inspect.signature(verb).bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{name.removeprefix('a')}: {error}") from None
        check_given(name.removeprefix("a"), hints, given)
        return await work(options(*args, **kwargs))

    assert isinstance(options, type)
    fields = list_fields(options, TurnView=TurnView)
    hints = {field.name: field.hint for field in fields}
    signature = inspect.signature(options)
    parameters = [signature.parameters[name].replace(annotation=hint) for name, hint in hints.items()]
    helps = [(field.name, field.flag.help) for field in fields if field.flag is not None]
    lines = [f"    {option}: " + _FLAG.sub(r"`\1`", line) for option, line in helps]
    verb.__name__ = verb.__qualname__ = name
    verb.__doc__ = "\n".join((f"{inspect.getdoc(work)}\n\nArgs:", *lines))
    vars(verb)["__signature__"] = signature.replace(
        parameters=sorted(parameters, key=lambda parameter: parameter.kind),
        return_annotation=inspect.signature(work).return_annotation,
    )
    return verb


def make_plain(verb: Callable[Parameters, Coroutine[Any, Any, Result]]) -> Callable[Parameters, Result]:
    """Make the form of a verb that waits for its end, in scripts and in notebooks alike."""

    @wraps(verb)
    def plain(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        return wait_for(verb(*args, **kwargs))

    plain.__name__ = plain.__qualname__ = verb.__name__.removeprefix("a")
    return plain


def bind_first(
    function: Callable[Concatenate[First, Parameters], Coroutine[Any, Any, Result]],
    first: First,
    name: str,
    summary: str,
) -> Callable[Parameters, Coroutine[Any, Any, Result]]:
    """Make a verb of a coroutine function whose first argument is given.

    Args:
        summary: first line of its docstring; the others are the function's.
    """

    @wraps(function)
    async def bound(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        return await function(first, *args, **kwargs)

    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[1:]
    vars(bound)["__signature__"] = signature.replace(parameters=parameters)
    bound.__name__ = bound.__qualname__ = name
    bound.__doc__ = f"{summary}\n{(inspect.getdoc(function) or '').partition(chr(10))[2]}"
    return bound
