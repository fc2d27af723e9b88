"""``proctor completion``: the script that teaches a shell to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["completion_command"]

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("shell", type=click.Choice(_SHELLS))
def completion_command(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash:  echo 'eval "$(proctor completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(proctor completion zsh)"' >> ~/.zshrc
    fish:  proctor completion fish > ~/.config/fish/completions/proctor.fish
    """
    from proctor.cli._root import root

    found = get_completion_class(shell)
    assert found is not None, "click completes the three shells that the argument allows"
    click.echo(found(root, {}, "proctor", "_PROCTOR_COMPLETE").source())
