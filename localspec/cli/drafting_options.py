"""Options on how to draft. None stands for an option that was not given; settings then decide."""

from __future__ import annotations

import click

from localspec.cli import options
from localspec.methods import METHODS, PACINGS, VERIFICATIONS, WORDS

METHODS_EPILOG = "\b\nMethods:\n" + "\n".join(f"  {name:<9}{words}" for name, words in WORDS.items())

method_choice = click.Choice(METHODS)

drafting = options.together(
    click.option(
        "--n-max",
        type=click.IntRange(1, 32),
        metavar="N",
        help="Most tokens drafted in a round. Default: 4; method auto may take 16 in any case.",
    ),
    click.option(
        "--n-min", type=click.IntRange(min=0), metavar="N", help="Throw away drafts that are shorter. Default: 0."
    ),
    click.option(
        "--p-min",
        type=click.FloatRange(0, 1),
        metavar="P",
        help="Draft model: stop before a token that it thinks less probable. Default: 0, never.",
    ),
    click.option(
        "--ngram-max",
        type=click.IntRange(min=1),
        metavar="N",
        help="Longest match that n-gram drafting looks for, in tokens. Default: 6.",
    ),
    click.option(
        "--ngram-min",
        type=click.IntRange(min=1),
        metavar="N",
        help="Shortest match that n-gram drafting takes, in tokens. Default: 4.",
    ),
    click.option(
        "--suffix-factor",
        type=click.FloatRange(min=0.1, max=32),
        metavar="X",
        help="Suffix drafting: most tokens for each token that matches. Default: 2.",
    ),
    click.option(
        "--suffix-p-min",
        type=click.FloatRange(0, 1),
        metavar="P",
        help="Suffix drafting: stop where a draft is less probable by what followed earlier. Default: 0.3.",
    ),
    click.option(
        "--pacing",
        type=click.Choice(PACINGS),
        help="fixed: always n-max tokens. adaptive: as many as pay, or none, by what is measured on the way. Method "
        "auto always does that. Default: fixed.",
    ),
    click.option(
        "--verification",
        type=click.Choice(VERIFICATIONS),
        help="Which drafts stay at a temperature; none changes how probable a text is. exact: also the same text for "
        "the same seed. rejection and block keep more of a draft model's. Default: exact.",
    ),
    click.option(
        "--draft-temp",
        "draft_temperature",
        type=click.FloatRange(max=100),
        metavar="T",
        help="Temperature of the drafts with rejection and block. Default: -1, the target's own.",
    ),
)

remembers = click.option(
    "--remember/--no-remember",
    "remembers",
    default=None,
    help="Suffix drafting: keep the tokens of answers on this machine, and copy from earlier ones, too. Default: no; "
    "`localspec remove --answers` deletes them.",
)
