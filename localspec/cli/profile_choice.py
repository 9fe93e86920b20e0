"""The option --profile: a command line that is filled up with what a profile holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from localspec.cli.completion import complete_model
from localspec.cli.services import Services
from localspec.methods import DRAFTING_SETTINGS, needs_draft, takes_draft

if TYPE_CHECKING:
    from localspec.session.profiles import NamedProfile, ProfileDocument
    from localspec.settings import DraftGroup

target = click.argument("target", required=False, metavar="[TARGET]", shell_complete=complete_model)

option = click.option(
    "--profile",
    "profile",
    metavar="NAME",
    help="Take the models, the method and the settings from a profile; what stands beside it goes first.",
)


def filled(services: Services, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given, with the profile's models, method and settings where nothing was.

    Files that are gone or changed are told of on stderr.

    Args:
        services: opens the database, if a profile is named.
        given: a command's parameters by name; among them profile, target, draft, and method or methods.

    Raises:
        click.UsageError: neither a target nor a profile is given.
        UsageError: there is no such profile.
        LocalspecError: it is damaged.
    """
    name = given["profile"]
    if name is None:
        if given["target"] is None:
            raise click.UsageError("Missing argument 'TARGET'. Give a model, or --profile NAME.")
        return dict(given)
    from localspec.cli.failures import say_notice
    from localspec.cli.profile import opened
    from localspec.session.profiles import file_notes, read_profile
    from localspec.store.profiles import Profiles

    with opened(services) as database:
        profile = read_profile(Profiles(database).get(name))
    document = profile.document
    is_own_target = given["target"] is None
    if is_own_target:
        for note in file_notes(profile):
            say_notice(note)
    made = {**given, "profile": profile.name, "target": given["target"] or document.target.path}
    method = document.speculation.method
    wanted = given["methods"] if "methods" in given else tuple(filter(None, (given["method"],)))
    # A draft goes with its target; for another one, whether it is a pair is not known.
    if document.draft is not None and given["draft"] is None and is_own_target and (not wanted or takes_draft(wanted)):
        made["draft"] = document.draft.path
    if not wanted and (not needs_draft((method,)) or made["draft"] is not None):
        if "methods" not in given:
            made["method"] = method
            made["by_workload"] = _by_workload(given, document, has_draft=made["draft"] is not None)
        elif method != "off":
            made["methods"] = ("off", method)
    for key, value in _settings(given, profile_settings(profile)).items():
        if made.get(key) is None:
            made[key] = value
    return made


def _by_workload(given: Mapping[str, Any], document: ProfileDocument, has_draft: bool) -> dict[str, DraftGroup]:
    """Return what the profile says for kinds of text; nothing where an option of drafting was given: it goes first."""
    if any(given.get(name) is not None for name in DRAFTING_SETTINGS):
        return {}
    kinds = document.by_workload.items()
    return {kind: group for kind, group in kinds if has_draft or not needs_draft((group.method,))}


def profile_settings(profile: NamedProfile) -> dict[str, object]:
    """Return a profile's settings as the options of a command are named."""
    from localspec.session.profiles import profile_flags

    flags = profile_flags(profile)
    drafting, own = flags["draft"], profile.document.draft_context
    named = {**drafting, **flags["context"], **flags["sampling"]}
    if own is not None:
        # Both contexts have settings of these names; those of the draft have options of their own.
        named |= {
            "draft_n_ctx": own.n_ctx,
            "draft_n_threads": own.n_threads,
            "draft_n_threads_batch": own.n_threads_batch,
            "draft_n_gpu_layers": own.n_gpu_layers,
            "draft_kv": f"{own.type_k}/{own.type_v}",
        }
    return named


def _settings(given: Mapping[str, Any], named: Mapping[str, object]) -> dict[str, object]:
    # A comparison at temperature 0 leaves workloads with a temperature of their own as they are.
    is_comparison = "methods" in given
    return {key: value for key, value in named.items() if not (is_comparison and key == "temperature" and value == 0.0)}
