"""`completion`: a script that lets the shell complete the names of commands."""

from __future__ import annotations

import argparse

from hermes_memory_pgvector.terminal import lines as terminal

NAME = "completion"
HELP = "print a script that lets bash, zsh or fish complete the names of commands"
GROUP = "set up"
EXAMPLES = (
    (
        "completion bash > ~/.local/share/bash-completion/completions/hermes-pgvector",
        "for bash, from the next shell on",
    ),
    ("completion zsh > ~/.hermes-pgvector.zsh", "for zsh, sourced by ~/.zshrc below compinit"),
    ("completion fish > ~/.config/fish/completions/hermes-pgvector.fish", "for fish"),
)

SCRIPTS = {
    "bash": "complete -o default -W '{names}' hermes-pgvector",
    "zsh": "_hermes_pgvector() {{ (( CURRENT == 2 )) && compadd {names} || _files; }}\n"
    "compdef _hermes_pgvector hermes-pgvector",
    "fish": "complete -c hermes-pgvector -n __fish_use_subcommand -f -a '{names}'",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the shell."""
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="the shell to write for")
    parser.set_defaults(json=False)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from hermes_memory_pgvector import cli

    terminal.say(SCRIPTS[args.shell].format(names=" ".join(command.name for command in cli.every_command())))
    return 0
