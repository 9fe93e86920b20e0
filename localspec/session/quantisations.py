"""Other quantisations of the same model: of its repository on the Hub, or on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from localspec.planning.plan import DraftAlternative

if TYPE_CHECKING:
    from localspec.catalog.found_model import FoundModel
    from localspec.session.located import LocatedModel


def local_quantisations(model: FoundModel, here: Sequence[FoundModel]) -> tuple[FoundModel, ...]:
    """Return the quantisations of a model's repository that are whole on this machine, the smallest first.

    A model whose repository is not known has none but itself.
    """
    if not model.repo:
        return (model,)
    same = [other for other in here if other.repo.casefold() == model.repo.casefold() and not other.missing]
    by_name = {other.quantisation or other.name: other for other in sorted(same, key=lambda other: other.file_bytes)}
    return tuple(by_name.values()) or (model,)


def quantisation_labels(model: LocatedModel, here: Sequence[FoundModel]) -> dict[str, tuple[str, int]]:
    """Return all quantisations of a model, itself among them: by quantisation what a person calls it, and its bytes."""
    if model.listing is not None:
        from localspec.catalog.hub.offers import offers

        return {
            offer.quantisation: (f"{model.listing.repo}:{offer.quantisation}", offer.size_bytes)
            for offer in offers(model.listing)
            if offer.kind == "model"
        }
    if model.found is None:
        return {}
    found = local_quantisations(model.found, here)
    return {other.quantisation or other.name: (other.name, other.file_bytes) for other in found}


def smaller_quantisations(labels: Mapping[str, tuple[str, int]], current: LocatedModel) -> tuple[DraftAlternative, ...]:
    """Return what of `quantisation_labels` is smaller than the present file."""
    size = next((size for label, size in labels.values() if label == current.label), 0)
    return tuple(
        DraftAlternative(quantisation, other) for quantisation, (_, other) in labels.items() if 0 < other < size
    )
