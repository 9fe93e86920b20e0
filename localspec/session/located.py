"""A model that a person named, local or on the Hub, brought to where its header can be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.catalog.found_model import FoundModel
from localspec.session.nominations import CandidateTarget

if TYPE_CHECKING:
    from localspec.catalog.facts import ModelFacts
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


async def locate_on_hub(hub: Hub, argument: str, on_step: OnStep) -> LocatedModel:
    """Return a model of the Hub with its header fetched; nothing else of it is.

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
    return await locate_offer(hub, listing, choose_offer(listing, reference.quantisation), on_step)


async def locate_offer(hub: Hub, listing: RepoListing, offer: Offer, on_step: OnStep) -> LocatedModel:
    """Return one of a repository's offers with its header fetched.

    Raises:
        HubError: the Hub could not be asked or refused.
        ModelFileError: the file is no GGUF that can be read.
    """
    from localspec.catalog.hub.remote_header import fetch_header

    label = f"{listing.repo}:{offer.quantisation}"
    on_step(f"reading the header of {label}", 0.5)
    return LocatedModel(label, await fetch_header(hub, listing, offer), None, listing, offer)
