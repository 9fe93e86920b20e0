"""A model that a person named, local or on the Hub, brought to where its header can be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.session.nominations import CandidateTarget

if TYPE_CHECKING:
    from localspec.catalog.facts import ModelFacts
    from localspec.catalog.found_model import FoundModel
    from localspec.catalog.hub.client import Hub
    from localspec.catalog.hub.values import Offer, RepoListing

OnStep = Callable[[str, float], None]
"""Called with what is going on and the fraction that is done."""


@dataclass(frozen=True, slots=True)
class LocatedModel:
    """A model whose header can be read at `path`."""

    label: str
    """A local name, or REPO:QUANT."""
    path: Path
    found: FoundModel | None
    """None for one on the Hub."""
    listing: RepoListing | None = None
    offer: Offer | None = None

    @property
    def is_remote(self) -> bool:
        """Whether only its header is here."""
        return self.found is None

    @property
    def repo(self) -> str:
        """Its repository, where it is known."""
        return self.listing.repo if self.listing is not None else self.found.repo if self.found is not None else ""

    def as_target(self, facts: ModelFacts | None = None) -> CandidateTarget:
        """Return it as what a draft is sought for."""
        base_models = () if self.listing is None else self.listing.base_models
        return CandidateTarget(self.path, self.label, self.repo, base_models, facts)


def local_model(found: FoundModel) -> LocatedModel:
    """Return a local model."""
    return LocatedModel(found.name, found.path, found)


def copy_of(listing: RepoListing, offer: Offer, here: Sequence[FoundModel]) -> FoundModel | None:
    """Return the model on this machine that is one of a repository's offers, whole and of the present content."""
    first = offer.files[0]
    for model in here:
        is_offered = model.repo.casefold() == listing.repo.casefold() and model.file_name == first.path
        if not is_offered or model.missing or model.file_bytes != offer.size_bytes:
            continue
        # The cache calls its files by their hashes, or by a shorter one where the Hub tells no hash.
        blob = os.path.basename(os.path.realpath(model.path))
        if model.place != "hugging face" or len(blob) != len(first.sha256) or blob == first.sha256:
            return model
    return None


async def locate_on_hub(hub: Hub, argument: str, on_step: OnStep, here: Sequence[FoundModel] = ()) -> LocatedModel:
    """Return a model of the Hub with its header fetched; nothing else of it is.

    Args:
        hub: where to look.
        argument: what a person typed.
        on_step: progress.
        here: models on this machine; one of them that is meant is taken as it lies here.

    Raises:
        UsageError: it is no OWNER/NAME[:QUANT], or that quantisation is not there.
        HubError: the Hub could not be asked or refused.
        ModelFileError: the file is no GGUF that can be read.
    """
    from localspec.catalog.hub.offers import choose_offer
    from localspec.catalog.hub.values import parse_reference

    reference = parse_reference(argument)
    on_step(f"asking the Hub for {reference.repo}", 0.0)
    listing = await hub.listing(reference.repo, reference.revision)
    return await locate_offer(hub, listing, choose_offer(listing, reference.quantisation), on_step, here)


async def locate_offer(
    hub: Hub, listing: RepoListing, offer: Offer, on_step: OnStep, here: Sequence[FoundModel] = ()
) -> LocatedModel:
    """Return one of a repository's offers with its header fetched, or as it lies here.

    Raises:
        HubError: the Hub could not be asked or refused.
        ModelFileError: the file is no GGUF that can be read.
    """
    from localspec.catalog.hub.remote_header import fetch_header

    label = f"{listing.repo}:{offer.quantisation}"
    if (found := copy_of(listing, offer, here)) is not None:
        return LocatedModel(label, found.path, found, listing, offer)
    on_step(f"reading the header of {label}", 0.5)
    return LocatedModel(label, await fetch_header(hub, listing, offer), None, listing, offer)
