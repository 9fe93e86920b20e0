from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from localspec.errors import LocalspecError
from localspec.settings import Settings
from localspec.tui.app import LocalspecApp
from localspec.tui.bench_settings import bench_of, carried_over
from localspec.tui.memory import Remembered, read_remembered, recall, remember, write_remembered
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Workbench
from tests.tui.waiting import until


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    for name in ("target.gguf", "draft.gguf"):
        (tmp_path / name).touch()
    usual = bench_of(Settings())
    return replace(
        usual,
        target=ChosenModel("[/] target", tmp_path / "target.gguf"),
        draft=ChosenModel("draft", tmp_path / "draft.gguf"),
        speculation=replace(usual.speculation, method="draft", n_max=7),
        sampling=replace(usual.sampling, temperature=0.7),
        max_tokens=77,
    )


def test_a_workbench_comes_back(bench: Workbench, tmp_path: Path) -> None:
    file = tmp_path / "app.json"
    write_remembered(file, remember(bench, Settings(), "chat"))
    remembered = read_remembered(file)
    assert remembered.screen == "chat"
    assert recall(remembered, Settings()) == bench
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app.json", "draft.gguf", "target.gguf"]


def test_settings_count_where_nothing_else_was_chosen(bench: Workbench) -> None:
    later = Settings.model_validate({"draft": {"n_max": 3, "n_min": 2}})
    again = recall(remember(bench, Settings(), ""), later)
    assert (again.speculation.n_max, again.speculation.n_min) == (7, 2)


def test_the_environment_is_above_what_is_remembered(bench: Workbench) -> None:
    again = recall(remember(bench, Settings(), ""), Settings(), {("draft", "n_max")})
    assert again.speculation.n_max == Settings().draft.n_max


def test_a_draft_that_is_gone_is_not_drafted_with(bench: Workbench) -> None:
    remembered = remember(bench, Settings(), "")
    assert bench.draft is not None
    bench.draft.path.unlink()
    again = recall(remembered, Settings())
    assert (again.target, again.draft, again.speculation.method) == (bench.target, None, "off")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b'{"max_tokens": 0}',
        b"\xff",
        b'{"changes": {"sampling": {"seed": {}}}}',
        b'"' + b"x" * 200_000 + b'"',
    ],
)
def test_a_damaged_file_is_nothing_remembered(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "app.json"
    file.write_bytes(text)
    assert read_remembered(file) == Remembered()


def test_values_that_cannot_be_are_left_out() -> None:
    odd = Remembered(changes={"sampling": {"top_p": 9.0, "unknown": 1}, "nothing": {"a": 1}})
    assert recall(odd, Settings()) == bench_of(Settings())


def test_a_folder_that_is_gone_is_a_failure_in_words(tmp_path: Path) -> None:
    with pytest.raises(LocalspecError, match="cannot be remembered"):
        write_remembered(tmp_path / "gone" / "app.json", Remembered())


def test_what_was_set_on_the_bench_stays_when_settings_change(bench: Workbench) -> None:
    later = Settings.model_validate({"draft": {"n_min": 2}, "context": {"n_ctx": 512}})
    again = carried_over(bench, Settings(), later)
    assert (again.speculation.n_max, again.speculation.n_min, again.context.n_ctx) == (7, 2, 512)
    assert again.draft_context.n_ctx == 512


async def test_the_app_begins_where_it_was_left(services: AppServices, bench: Workbench, tmp_path: Path) -> None:
    services = replace(services, memory_file=lambda: tmp_path / "app.json")
    first = LocalspecApp(services)
    async with first.run_test() as pilot:
        first.workbench = bench
        await pilot.press("f4")
        await pilot.press("ctrl+q")
    second = LocalspecApp(services)
    async with second.run_test() as pilot:
        await pilot.pause()
        assert second.current_mode == "chat"
        assert second.workbench == bench


async def test_choices_are_written_before_the_end(services: AppServices, bench: Workbench, tmp_path: Path) -> None:
    file = tmp_path / "app.json"
    app = LocalspecApp(replace(services, memory_file=lambda: file))
    async with app.run_test() as pilot:
        app.workbench = bench
        await until(pilot, lambda: read_remembered(file).target is not None)


async def test_without_a_folder_the_app_forgets(services: AppServices) -> None:
    def refuse() -> Path:
        raise LocalspecError("No folder.")

    app = LocalspecApp(replace(services, memory_file=refuse))
    async with app.run_test() as pilot:
        await pilot.press("ctrl+q")
    assert app.return_value == 0
