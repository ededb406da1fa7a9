"""`completion`: a script that lets the shell complete commands, options, settings and their values.

It is written from the command tree itself, so it knows what this version knows and starts no program while one types.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field

from hermes_memory_pgvector.cli import tree
from hermes_memory_pgvector.config.settings import DECLARATIONS
from hermes_memory_pgvector.setup import terminal

NAME = "completion"
HELP = "print a script that lets bash, zsh or fish complete what you type"
GROUP = "set up"
EXAMPLES = (
    (
        "completion bash > ~/.local/share/bash-completion/completions/hermes-pgvector",
        "for bash, from the next shell on",
    ),
    ("completion zsh > ~/.zfunc/_hermes-pgvector", "for zsh, with ~/.zfunc in your fpath"),
    ("completion fish > ~/.config/fish/completions/hermes-pgvector.fish", "for fish"),
)

PROGRAM = "hermes-pgvector"
FOLDERS = ("--hermes-home",)
"""Options that take a folder."""


@dataclass(frozen=True, slots=True)
class Place:
    """What may follow once these words have been typed."""

    path: tuple[str, ...]
    words: dict[str, str]
    """Commands or values, each with its help."""
    options: dict[str, str]
    choices: dict[str, list[str]] = field(default_factory=dict)
    """Values of options that take one of a few."""
    takes_value: frozenset[str] = frozenset()


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the shell."""
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="the shell to write for")
    parser.set_defaults(json=False)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from hermes_memory_pgvector import cli

    parser = tree.Parser(prog=PROGRAM)
    cli.configure(parser)
    terminal.say(SCRIPTS[args.shell](list(places(parser))))
    return 0


def places(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Place]:
    """Every place of the command tree."""
    below = tree.commands_of(parser)
    words = dict(below.helps) if below else {}
    options: dict[str, str] = {}
    choices: dict[str, list[str]] = {}
    takes_value = set()
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, tree.Commands):
            continue
        values = [str(choice) for choice in action.choices or ()]
        if not action.option_strings:
            words |= dict.fromkeys(values, "")
            if path[:1] == ("config",) and action.dest == "name":
                words |= {name: declaration.help for name, declaration in DECLARATIONS.items()}
        for name in action.option_strings:
            if name.startswith("--"):
                options[name] = (action.help or "").replace("%(default)s", str(action.default))
                if action.nargs != 0:
                    takes_value.add(name)
                    choices |= {name: values} if values else {}
    yield Place(path, words, options, choices, frozenset(takes_value))
    for name in below.helps if below else ():
        yield from places(below.parsers[name], (*path, name)) if below else ()


def bash(found: list[Place]) -> str:
    """The script for bash."""
    paths = "|".join(f'"{" ".join(place.path)}"' for place in found if place.path)
    values = [
        f'        "{" ".join(place.path)}:{name}") words="{" ".join(choices)}" ;;'
        for place in found
        for name, choices in place.choices.items()
    ]
    folders = "|".join(f"*:{name}" for name in FOLDERS)
    free = sorted({name for place in found for name in place.takes_value if name not in place.choices})
    words = [
        f'        "{" ".join(place.path)}") words="{" ".join([*place.words, *place.options])}" ;;' for place in found
    ]
    return "\n".join(
        [
            f"# {PROGRAM}: completion for bash",
            "_hermes_pgvector() {",
            '    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" path="" words="" word',
            '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
            '        case "${path:+$path }$word" in',
            f'            {paths}) path="${{path:+$path }}$word" ;;',
            "        esac",
            "    done",
            '    case "$path:$prev" in',
            f'        {folders}) COMPREPLY=($(compgen -d -- "$cur")); return ;;',
            *values,
            f"        {'|'.join(f'*:{name}' for name in free if name not in FOLDERS)}) return ;;",
            "    esac",
            '    [ -n "$words" ] || case "$path" in',
            *words,
            "    esac",
            '    COMPREPLY=($(compgen -W "$words" -- "$cur"))',
            "}",
            f"complete -F _hermes_pgvector {PROGRAM}",
        ]
    )


def zsh(found: list[Place]) -> str:
    """The script for zsh: the same tables, with the help beside each word."""
    paths = "|".join(f'"{" ".join(place.path)}"' for place in found if place.path)
    lines = [
        f"#compdef {PROGRAM}",
        "_hermes_pgvector() {",
        '    local path_="" word; local -a found given',
        "    for word in ${words[2,CURRENT-1]}; do",
        '        case "${path_:+$path_ }$word" in',
        f'            {paths}) path_="${{path_:+$path_ }}$word" ;;',
        "        esac",
        "    done",
        '    case "$path_:${words[CURRENT-1]}" in',
        f"        {'|'.join(f'*:{name}' for name in FOLDERS)}) _files -/; return ;;",
    ]
    for place in found:
        for name, choices in place.choices.items():
            lines.append(f'        "{" ".join(place.path)}:{name}") compadd {" ".join(choices)}; return ;;')
    free = sorted({name for place in found for name in place.takes_value if name not in place.choices} - set(FOLDERS))
    lines += [f"        {'|'.join(f'*:{name}' for name in free)}) return ;;", "    esac", '    case "$path_" in']
    for place in found:
        described, given = (
            " ".join(_quoted(f"{name}:{text}" if text else name) for name, text in shown.items())
            for shown in (place.words, place.options)
        )
        lines.append(f'        "{" ".join(place.path)}") found=({described}); given=({given}) ;;')
    return "\n".join(
        [
            *lines,
            "    esac",
            "    _describe 'command' found",
            "    _describe -o 'option' given",
            "}",
            f"compdef _hermes_pgvector {PROGRAM}",
        ]
    )


def fish(found: list[Place]) -> str:
    """The script for fish: one line for each word at each place."""
    lines = [
        f"# {PROGRAM}: completion for fish",
        "function __hermes_pgvector_at",
        "    set -l path",
        "    for word in (commandline -opc)[2..-1]",
        '        set -l longer (string trim -- "$path $word")',
        f"        contains -- $longer {' '.join(_quoted(' '.join(place.path)) for place in found if place.path)}",
        "        and set path $longer",
        "    end",
        '    test "$path" = "$argv[1]"',
        "end",
        f"complete -c {PROGRAM} -f",
    ]
    for place in found:
        at = f"""complete -c {PROGRAM} -n {_quoted(f'__hermes_pgvector_at "{" ".join(place.path)}"')}"""
        lines += [f"{at} -a {_quoted(word)} -d {_quoted(text)}" for word, text in place.words.items()]
        for name, text in place.options.items():
            value = ""
            if name in FOLDERS:
                value = " -r -a '(__fish_complete_directories)'"
            elif name in place.choices:
                value = f" -x -a {_quoted(' '.join(place.choices[name]))}"
            elif name in place.takes_value:
                value = " -x"
            lines.append(f"{at} -l {name.removeprefix('--')}{value} -d {_quoted(text)}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "").replace("'", "’") + "'"


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
