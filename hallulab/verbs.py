"""Make the verbs of `hallulab.api`: functions of their commands' options, to call and to await."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import re
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import wraps
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from hallulab.scenarios.arguments import check_given
from hallulab.scenarios.transcript import TurnView

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
    name: str,
    options: Callable[Parameters, Options],
    work: Callable[[Options], Coroutine[Any, Any, Result]],
) -> Callable[Parameters, Coroutine[Any, Any, Result]]:
    """Make the coroutine function of a verb: it takes the fields of its options, one by one.

    Args:
        name: what it is called.
        options: the dataclass that the verb's command reads, too.
        work: what it does with them. Its docstring becomes the verb's, with the options added.
    """

    async def verb(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            given = inspect.signature(verb).bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{name.removeprefix('a')}: {error}") from None
        check_given(name.removeprefix("a"), hints, given)
        return await work(options(*args, **kwargs))

    assert isinstance(options, type)
    own = options.__annotations__  # those that the verb shares with others stand last
    hints = get_type_hints(options, localns={"TurnView": TurnView})
    signature = inspect.signature(options)

    def shared_last(parameter: inspect.Parameter) -> tuple[int, bool]:
        return parameter.kind, parameter.name not in own

    ordered = sorted(signature.parameters.values(), key=shared_last)
    parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in ordered]
    verb.__name__ = verb.__qualname__ = name
    verb.__doc__ = f"{inspect.getdoc(work)}\n\nArgs:\n{_describe_options(options, parameters)}"
    vars(verb)["__signature__"] = signature.replace(
        parameters=parameters, return_annotation=inspect.signature(work).return_annotation
    )
    return verb


def _describe_options(options: type, parameters: Sequence[inspect.Parameter]) -> str:
    """Return a line for each parameter that has a flag: its name, and what `--help` says of it."""
    hints = get_type_hints(options, localns={"TurnView": TurnView}, include_extras=True)
    flagged = [one.name for one in parameters if get_origin(hints[one.name]) is Annotated]
    helps = {name: _FLAG.sub(r"`\1`", get_args(hints[name])[1].help) for name in flagged}
    return "\n".join(f"    {name}: {line}" for name, line in helps.items())


def make_plain(
    verb: Callable[Parameters, Coroutine[Any, Any, Result]],
) -> Callable[Parameters, Result]:
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
        name: of the verb.
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
