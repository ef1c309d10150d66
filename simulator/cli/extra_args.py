"""Commands that pass the words after `--` on to the model server, and nothing else."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from hallulab.scenarios.errors import UsageError


class PassingOn(TyperCommand):
    """A command whose `context.args` is what stands after the first `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command's own arguments, those before `--`.

        Raises:
            UsageError: there is a word that the command does not take.
        """
        end = args.index("--") if "--" in args else len(args)
        # To the parser, a stray word and one after `--` are the same.
        ctx.allow_extra_args = True
        stray = super().parse_args(ctx, args[:end])
        if stray:
            raise UsageError(
                f"{stray[0]}: `{self.name}` takes no such word. Lists are separated by commas (a,b), and "
                "flags of the model server stand after `--`."
            )
        ctx.args = args[end + 1 :]
        return list(ctx.args)
