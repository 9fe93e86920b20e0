"""What a repository has to download: its GGUF files, grouped into what a person would call one thing."""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from localspec.catalog.file_names import is_model, quantisation_in, shard_of, stem_of, typable
from localspec.catalog.hub.values import Offer, OfferKind, RepoFile, RepoListing
from localspec.errors import UsageError
from localspec.units import memory_scale

DEFAULT_ORDER = ("Q4_K_M", "Q4_K_S", "Q4_K_XL", "Q4_0", "Q5_K_M", "Q8_0", "MXFP4_MOE", "MXFP4")
"""What is taken where none is named: what most people run, then what is nearest to it."""

# llama.cpp looks for these words with a hyphen after them, in small letters (common/download.cpp).
_SIDES = re.compile(r"(?<![a-z0-9])(eagle3|dflash|dspark)(?![a-z0-9])", re.IGNORECASE)
_ADAPTER = re.compile(r"(?<![a-z])(?:lora|adapter)(?![a-z])", re.IGNORECASE)
_SHOWN = 24


def offers(listing: RepoListing) -> tuple[Offer, ...]:
    """Return what there is to download, the smallest first. Split models that lack a file are left out."""
    models: defaultdict[tuple[str, str, int], dict[int, RepoFile]] = defaultdict(dict)
    for file in listing.files:
        folder, _, name = file.path.rpartition("/")
        if is_model(name) and not _is_adapter(name):
            stem, index, count = shard_of(name) or (name, 1, 0)
            models[folder, stem, count][index] = file
    whole = [_offer(files) for (_, _, count), files in models.items() if len(files) == max(count, 1)]
    return tuple(sorted(_told_apart(whole), key=lambda offer: (offer.size_bytes, offer.quantisation)))


def choose_offer(listing: RepoListing, quantisation: str, kind: OfferKind | None = None) -> Offer:
    """Return the offer that a person means; an empty quantisation means what is usually best.

    Args:
        listing: of the repository.
        quantisation: a label of `offers` or the beginning of one, in any case, or a file name without `.gguf`.
        kind: only offers of this kind; None: models, or whatever there is in a repository without models.

    Raises:
        UsageError: there is none, or several are meant; says what there is.
    """
    everything = offers(listing)
    if kind is None:
        choice = [offer for offer in everything if offer.kind == "model"] or list(everything)
    else:
        choice = [offer for offer in everything if offer.kind == kind]
    if quantisation:
        # A draft-only file beside models is meant by whoever names it in full.
        named = _called(everything, quantisation, (_stem,))
        found = _meant(choice, quantisation) or (named if kind is None else [])
    else:
        found = _usual(choice)
    if len(found) == 1:
        return found[0]
    raise _not_chosen(listing, quantisation, found, choice)


def _meant(choice: Sequence[Offer], wanted: str) -> list[Offer]:
    """Return the offers that a word may mean, by the first of these readings that fits any."""
    word = wanted.casefold()
    return (
        _called(choice, wanted, (_quantisation, _stem, _plain))
        or [offer for offer in choice if offer.quantisation.casefold().startswith(word)]
        or [offer for offer in choice if _plain(offer).casefold().startswith(word)]
    )


def _called(choice: Sequence[Offer], wanted: str, names: Sequence[Callable[[Offer], str]]) -> list[Offer]:
    """Return the offers with a name, by the first kind of name that fits any; the case counts if that fits any."""
    for fold in (str, str.casefold):
        for name_of in names:
            if found := [offer for offer in choice if fold(name_of(offer)) == fold(wanted)]:
                return found
    return []


def _usual(choice: Sequence[Offer]) -> list[Offer]:
    if len(choice) < 2:
        return list(choice)
    for label in DEFAULT_ORDER:
        if found := [offer for offer in choice if _plain(offer) == label]:
            exact = [offer for offer in found if offer.quantisation == label]
            return exact or found
    # The choice comes sorted by size.
    enough = [offer for offer in choice if _bits(offer) >= 4]
    return enough[:1] or list(choice[-1:])


def _not_chosen(listing: RepoListing, wanted: str, found: Sequence[Offer], choice: Sequence[Offer]) -> UsageError:
    repo = listing.repo
    if not choice:
        return UsageError(f"{repo} has no GGUF model to download.", "Look for one with `localspec search WORDS`.")
    if found:
        what = f"{repo}:{wanted}" if wanted else repo
        return UsageError(f"{what} may mean several files.", f"Name one of {_shown(found)}.")
    labels = {offer.quantisation.casefold(): offer.quantisation for offer in choice}
    near = difflib.get_close_matches(wanted.casefold(), labels, 1)
    question = f"Did you mean {repo}:{labels[near[0]]}? " if near else ""
    rest = f" {listing.num_surplus} more files were not looked at." if listing.num_surplus else ""
    return UsageError(f"{repo} has no {wanted}.", f"{question}It has {_shown(choice)}.{rest}")


def _shown(some: Sequence[Offer]) -> str:
    texts = [f"{offer.quantisation} ({_size(offer.size_bytes)})" for offer in some[:_SHOWN]]
    return ", ".join(texts) + (f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else "")


def _size(num_bytes: int) -> str:
    if not num_bytes:
        return "size unknown"
    giga, mega, _ = memory_scale()
    unit, name = giga if num_bytes >= giga[0] else mega
    return f"{num_bytes / unit:.1f} {name}"


def _offer(files: dict[int, RepoFile]) -> Offer:
    ordered = tuple(files[index] for index in sorted(files))
    path = PurePosixPath(ordered[0].path)
    return Offer(_label(path), _kind(path.name), ordered)


def _told_apart(every: Sequence[Offer]) -> list[Offer]:
    """Give offers of one kind and label their names instead, and number those that are still alike."""
    alike = Counter((offer.kind, offer.quantisation) for offer in every)
    used: set[tuple[str, str]] = set()
    numbers: Counter[tuple[str, str]] = Counter()
    told = []
    for offer in every:
        label = offer.quantisation if alike[offer.kind, offer.quantisation] == 1 else _full_label(offer)
        key = name = (offer.kind, label)
        # Counting goes on where it stopped: thousands of equal names would otherwise take minutes.
        while name in used:
            numbers[key] += 1
            name = (offer.kind, f"{label}-{numbers[key] + 1}")
        used.add(name)
        told.append(replace(offer, quantisation=name[1]))
    return told


def _full_label(offer: Offer) -> str:
    parts = PurePosixPath(offer.files[0].path).parent.parts
    stem = _stem(offer)
    return typable(".".join((*(part for part in parts if part not in stem), stem)))


def _label(path: PurePosixPath) -> str:
    """Return the quantisation in a file's name, or in the name of the folder next to it, or else the name."""
    stem = stem_of(path.name)
    for part in (stem, *reversed(path.parent.parts)):
        if label := quantisation_in(part):
            return label
    return typable(stem)


def _kind(name: str) -> OfferKind:
    if match := _SIDES.search(name):
        word = match[1].lower()
        return "eagle3" if word == "eagle3" else "dflash" if word == "dflash" else "dspark"
    # Here the case counts, as in llama.cpp: whole models with MTP layers inside say `-MTP-` in their names.
    return "mtp" if "mtp-" in name or name.startswith("MTP-") else "model"


def _is_adapter(name: str) -> bool:
    return _ADAPTER.search(name) is not None and "merged" not in name.lower()


def _quantisation(offer: Offer) -> str:
    return offer.quantisation


def _stem(offer: Offer) -> str:
    return stem_of(PurePosixPath(offer.files[0].path).name)


def _plain(offer: Offer) -> str:
    """Return the quantisation without the prefix of those who choose types tensor by tensor."""
    return (quantisation_in(offer.quantisation) or offer.quantisation).removeprefix("UD-")


def _bits(offer: Offer) -> int:
    digits = re.search(r"\d+", quantisation_in(offer.quantisation))
    return int(digits[0]) if digits else 0
