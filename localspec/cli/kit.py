"""`localspec kit`: a pair of models in one folder, for a machine without network."""

from __future__ import annotations

import re
from pathlib import Path

from localspec.catalog.found_model import FoundModel
from localspec.catalog.kit import KitManifest, KitPart, KitRole, export_kit, import_kit
from localspec.cli.advice import command_line
from localspec.cli.errand import run_errand
from localspec.cli.failures import EXIT_DONE
from localspec.cli.screen import Report, results_console, say
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.cli.transfers import transfer_printer
from localspec.engine.interface import Engine
from localspec.errors import ModelFileError
from localspec.paths import models_dir
from localspec.session.arguments import named_model
from localspec.session.figures import bytes_text
from localspec.session.header_questions import read_facts
from localspec.session.library import local_models
from localspec.session.plain_text import one_line
from localspec.session.records import encode_record

SCHEMA = 1


def run_export(services: Services, folder: Path, target: str, draft: str | None, is_json: bool) -> int:
    """Copy the models into a folder, and return the exit code."""
    settings = settings_in_force()

    async def work(engine: Engine, report: Report) -> KitManifest:
        wanted: list[tuple[KitRole, str]] = [("target", target)]
        if draft is not None:
            wanted.append(("draft", draft))
        parts: list[KitPart] = []
        for role, argument in wanted:
            found = named_model(argument, settings)
            parts += kit_parts(role, found, (await read_facts(engine, found.path)).licence)
        return await export_kit(folder, parts, transfer_printer(report))

    manifest = run_errand(services, "reading headers", work)
    console = results_console(is_json)
    size = sum(file.size for file in manifest.files)
    count = "1 file" if len(manifest.files) == 1 else f"{len(manifest.files)} files"
    say(console, one_line(f"{count}, {bytes_text(size)}, in {folder}."))
    say(console, f"On the other machine: {command_line('localspec', 'kit', 'import', folder.name)}")
    if is_json:
        files = [file.model_dump() for file in manifest.files]
        print(encode_record({"schema": SCHEMA, "folder": str(folder), "files": files}))
    return EXIT_DONE


def kit_parts(role: KitRole, found: FoundModel, licence: str) -> list[KitPart]:
    """Return a model's files as a kit takes them, under the names that they were published with.

    Raises:
        ModelFileError: some of them are missing.
    """
    if found.missing:
        raise ModelFileError(
            f"{found.name} is not whole: {', '.join(found.missing[:3])} is missing.", "Fetch it again first."
        )
    parts = []
    for path in found.shards:
        # Ollama calls its files by their hashes.
        name = path.name if path.suffix.lower() == ".gguf" else f"{re.sub(r'[^A-Za-z0-9._-]+', '-', found.name)}.gguf"
        parts.append(KitPart(path, role, name, found.repo, found.commit, found.quantisation, licence))
    return parts


def run_import(services: Services, folder: Path, is_json: bool) -> int:
    """Verify and copy a kit, say how to use it, and return the exit code."""
    settings = settings_in_force()

    async def work(engine: Engine, report: Report) -> tuple[Path, ...]:
        return await import_kit(folder, models_dir(), transfer_printer(report))

    before = {path for model in local_models(settings) for path in model.shards}
    paths = run_errand(services, "checking the kit", work)
    found = local_models(settings)
    by_path = {path: model.name for model in found for path in model.shards}
    # The kit's own order: the target first.
    names = list(dict.fromkeys(by_path[path] for path in paths if path in by_path))
    console = results_console(is_json)
    done = "All of it is here already, and is what it should be" if before.issuperset(paths) else "Verified and copied"
    say(console, one_line(f"{done}: {', '.join(names)}."))
    if names:
        drafting = ("--draft", names[1]) if len(names) > 1 else ("--method", "ngram")
        say(console, "To see whether speculation pays:")
        console.print(f"  {command_line('localspec', 'bench', names[0], *drafting)}", soft_wrap=True)
    if is_json:
        print(encode_record({"schema": SCHEMA, "files": [str(path) for path in paths], "names": names}))
    return EXIT_DONE
