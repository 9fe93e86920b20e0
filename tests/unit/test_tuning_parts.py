"""The parts of the tuner: budgets, the space, ways of loading, the decision, energy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.engine.events import StepCost, StepsMeasured
from localspec.engine.values import ContextSettings, SpeculationSettings
from localspec.errors import LocalspecError, UsageError
from localspec.hardware.cores import Cores
from localspec.hardware.energy import joules_between, read_energy
from localspec.hardware.host import read_host
from localspec.metrics.comparison import judge
from localspec.metrics.statistics import Estimate
from localspec.session.tuning.budget import Pace, budget_text, confirm_s, num_confirm_pairs, parse_budget, size_up
from localspec.session.tuning.cold import ColdKnobs, Contexts, best_length, screen, thread_counts
from localspec.session.tuning.conditions import condition_notes
from localspec.session.tuning.confirmation import choose_winner, split_prompts
from localspec.session.tuning.search import Ledger, finalists
from localspec.session.tuning.space import N_MAX, P_MIN, Space, complexity, heat_cells, setting_name
from localspec.session.tuning.values import ColdChoice, ColdTrial, Confirmed, TuningTrial, WarmSetting
from tests.tuning_kit import plan_of, workload

DRAFTS = (Path("one.gguf"), Path("two.gguf"))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("5m", 300), ("1h", 3600), ("1.5h", 5400), ("2m30s", 150), (" 1H 5m ", 3900)]
)
def test_budgets(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "5 minutes", "-5m", "1s", "5m5m", "30h", "5m x", "nan", "1e3s"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(UsageError):
        parse_budget(text)


@given(st.integers(min_value=10, max_value=86400))
def test_budgets_are_read_as_they_are_written(seconds: int) -> None:
    assert parse_budget(budget_text(seconds)) == seconds


@given(
    start_s=st.floats(0.01, 20),
    token_s=st.floats(0.001, 2),
    seconds=st.floats(10, 7200),
    num_workloads=st.integers(1, 4),
)
def test_what_is_sized_up_fits(start_s: float, token_s: float, seconds: float, num_workloads: int) -> None:
    pace = Pace(start_s, token_s)
    try:
        extent = size_up(pace, num_workloads, seconds, 128, 5.0)
    except UsageError as error:
        least = parse_budget(error.hint.split("--budget ")[1].split(";")[0])
        assert size_up(pace, num_workloads, least - 5.0, 128, 5.0).max_tokens >= 32
        return
    pairs = num_confirm_pairs(pace, num_workloads, extent.max_tokens, extent.num_finalists, extent.confirm_s)
    assert 32 <= extent.max_tokens <= 128 and pairs >= 5
    assert confirm_s(pace, num_workloads, extent.max_tokens, extent.num_finalists, pairs) <= extent.confirm_s + 1e-6
    assert extent.confirm_s < seconds


class Chosen:
    """Chooses what it was told."""

    def __init__(self, values: dict[str, int | str]) -> None:
        self.values = values
        self.unread = set(values)

    def suggest_int(self, name: str, low: int, high: int) -> int:
        self.unread.discard(name)
        value = int(self.values[name])
        assert low <= value <= high
        return value

    def suggest_categorical(self, name: str, choices: object) -> str:
        self.unread.discard(name)
        value = str(self.values[name])
        assert value in choices  # type: ignore[operator]
        return value


@pytest.mark.parametrize("drafts", [(), DRAFTS[:1], DRAFTS])
@pytest.mark.parametrize("is_hot", [False, True])
def test_every_seed_can_be_chosen(drafts: tuple[Path, ...], is_hot: bool) -> None:
    space = Space(drafts, is_hot, SpeculationSettings(n_min=2))
    for length in range(1, 17):
        seeds = space.seeds(length)
        assert seeds[0].speculation.method == "auto" and len(set(seeds)) == len(seeds)
        assert {seed.draft for seed in seeds} >= set(drafts)
        for seed in seeds:
            chooser = Chosen(space.values_of(seed))
            assert space.choose(chooser) == seed and not chooser.unread
            assert seed.speculation.n_min <= seed.speculation.n_max
            assert (seed.draft is None) <= (seed.speculation.verification == "exact")


def test_without_a_draft_nothing_needs_one() -> None:
    assert Space((), True, SpeculationSettings()).methods == ("auto", "suffix", "ngram")
    assert Space(DRAFTS, False, SpeculationSettings(), ("draft",)).methods == ("auto", "draft")


def setting(method: str = "draft", draft: Path | None = None, **more: object) -> WarmSetting:
    return WarmSetting(replace(SpeculationSettings(), method=method, **more), draft)  # type: ignore[arg-type]


def test_which_settings_are_simpler() -> None:
    ordered = [
        setting("auto"),
        setting("ngram", n_max=4),
        setting("suffix", n_max=8),
        setting("auto", DRAFTS[0]),
        setting("draft", DRAFTS[0], n_max=2),
        setting("draft", DRAFTS[0], n_max=2, p_min=0.3),
        setting("cascade", DRAFTS[0]),
        setting("draft", DRAFTS[0], verification="block"),
    ]
    assert sorted(reversed(ordered), key=complexity) == ordered


def test_a_setting_names_its_draft_where_there_are_several() -> None:
    assert "one.gguf" not in setting_name(setting(draft=DRAFTS[0]), DRAFTS[:1])
    assert setting_name(setting(draft=DRAFTS[0]), DRAFTS).endswith("one.gguf")


def test_the_map_holds_drafting_with_a_model_only() -> None:
    trials = [
        TuningTrial(setting(draft=DRAFTS[0], n_max=4), (("w", (1.2, 1.2)),)),
        TuningTrial(setting(draft=DRAFTS[1], n_max=4), (("w", (1.4,)),)),
        TuningTrial(setting("ngram"), (("w", (3.0,)),)),
        TuningTrial(setting(draft=DRAFTS[0], n_max=2), reason="no"),
    ]
    assert [(cell.n_max, cell.p_min, round(cell.ratio, 6), cell.num_pairs) for cell in heat_cells(trials)] == [
        (4, 0.0, 1.4, 1)
    ]
    assert set(N_MAX) >= {4} and set(P_MIN) >= {0.0}


def test_few_pairs_do_not_win_by_luck() -> None:
    ledger, sure, lucky = Ledger(), setting(n_max=4), setting(n_max=8)
    for ratio in (1.28, 1.32, 1.3, 1.31, 1.29, 1.18, 1.42, 1.3):
        ledger.add({sure: {"w": ratio}})
    ledger.add({lucky: {"w": 1.33}})
    assert finalists(ledger, 1) == (sure,)


def test_auto_is_confirmed_where_it_is_as_good_as_the_second() -> None:
    ledger = Ledger()
    for ratio in (0.97, 1.03):
        ledger.add({setting(n_max=n): {"w": ratio * (1.3 + n / 100)} for n in (4, 6)})
        ledger.add({setting("auto"): {"w": ratio * 1.33}, setting("ngram"): {"w": ratio * 0.9}})
    assert finalists(ledger, 2) == (setting(n_max=6), setting("auto"))


def confirmed(one: WarmSetting, median: float, low: float, high: float, reason: str = "") -> Confirmed:
    estimate = Estimate(median, low, high, 5)
    return Confirmed(one, "arm", estimate, judge(estimate), (("w", estimate),), reason)


def test_the_winner() -> None:
    plain, complex_one = setting("ngram"), setting("cascade", DRAFTS[0])
    better = confirmed(complex_one, 1.42, 1.35, 1.5)
    assert choose_winner([better, confirmed(plain, 1.2, 1.1, 1.3)]) == better
    simple = confirmed(plain, 1.4, 1.3, 1.5)
    assert choose_winner([better, simple]) == simple
    assert choose_winner([confirmed(plain, 1.4, 0.99, 1.9)]) is None
    assert choose_winner([confirmed(plain, 1.01, 1.005, 1.02)]) is None
    assert choose_winner([confirmed(plain, 1.4, 1.3, 1.5, "its text is wrong")]) is None
    assert choose_winner([]) is None


def test_prompts_are_parted() -> None:
    searching, confirming = split_prompts(workload(num_prompts=5))
    assert {p.name for p in searching.prompts} | {p.name for p in confirming.prompts} == {f"open{n}" for n in range(5)}
    assert not {p.name for p in searching.prompts} & {p.name for p in confirming.prompts}
    one = workload(num_prompts=1)
    assert split_prompts(one) == (one, one)


GIVEN = (ContextSettings(), ContextSettings())
CORES = Cores(physical=4, logical=8, machine_logical=8)


def costs_of(factors: dict[int, float], draft: float, base_s: float = 0.1) -> StepsMeasured:
    costs = tuple(StepCost(width, base_s * f, 0.99 * base_s * f, 1.01 * base_s * f, 9) for width, f in factors.items())
    return StepsMeasured(1, 256, 100.0, costs, 100.0, StepCost(1, draft * base_s, draft * base_s, draft * base_s, 9))


class Loads:
    """Times ways of loading by a rule."""

    def __init__(self, single: dict[int, float], wide: dict[int, float], draft: dict[int, float]) -> None:
        self.single, self.wide, self.draft = single, wide, draft
        self.tried: list[Contexts] = []

    async def __call__(self, target: ContextSettings, draft: ContextSettings) -> StepsMeasured:
        self.tried.append((target, draft))
        one = target.n_threads or 4
        many = target.n_threads_batch or one
        wide = self.wide.get(many, 1.0)
        factors = {1: self.single.get(one, 1.0), 2: 1.2 * wide, 3: 1.3 * wide, 5: 1.5 * wide, 9: 2.0 * wide}
        return costs_of(factors, self.draft.get(draft.n_threads or one, 0.2))


async def screened(measure: Loads, **knobs: object) -> ColdChoice:
    made = ColdKnobs(CORES, has_gpu=False, has_draft=True, **knobs)  # type: ignore[arg-type]
    return await screen(measure, GIVEN, made, lambda: True, lambda what: None)


async def test_each_kind_of_step_gets_its_own_threads() -> None:
    choice = await screened(Loads({3: 0.8}, {8: 0.7}, {}))
    assert choice.changes == ("threads 3", "threads-batch 8")
    for context in (choice.context, choice.draft_context):
        assert (context.n_threads, context.n_threads_batch) == (3, 8)
    assert choice.off_gain == pytest.approx(1 / 0.8)


async def test_single_steps_of_target_and_draft_have_the_same_threads() -> None:
    # Two threads make a slow draft much faster, and cost the target a little.
    draft = {n: 0.8 for n in (1, 3, 4, 8)}
    choice = await screened(Loads({2: 1.01}, {}, {2: 0.2, **draft}))
    assert choice.context.n_threads == choice.draft_context.n_threads == 2


async def test_what_is_hardly_better_stays_as_given() -> None:
    choice = await screened(Loads({3: 0.98}, {8: 0.98}, {}))
    assert choice.changes == () and choice.off_gain is None and choice.context == GIVEN[0]


async def test_what_was_an_accident_is_taken_back() -> None:
    class Changing(Loads):
        async def __call__(self, target: ContextSettings, draft: ContextSettings) -> StepsMeasured:
            if len(self.tried) > 6:
                self.single = {n: 0.8 for n in range(9)}
            return await super().__call__(target, draft)

    choice = await screened(Changing({3: 0.8}, {}, {}))
    assert choice.changes == () and any("stays as given" in note for note in choice.notes)


async def test_a_way_that_cannot_be_loaded_is_told() -> None:
    class Failing(Loads):
        async def __call__(self, target: ContextSettings, draft: ContextSettings) -> StepsMeasured:
            if not target.flash_attn:
                raise LocalspecError("no such kernel")
            return await super().__call__(target, draft)

    choice = await screened(Failing({}, {}, {}))
    assert [trial.reason for trial in choice.trials if trial.reason] == ["no such kernel"]


async def test_without_time_nothing_but_the_first_is_tried() -> None:
    measure = Loads({3: 0.5}, {}, {})
    knobs = ColdKnobs(CORES, has_gpu=False, has_draft=True)
    choice = await screen(measure, GIVEN, knobs, lambda: False, lambda what: None)
    assert len(measure.tried) == 1 and choice.changes == ()


def test_the_length_that_pays_by_what_steps_cost() -> None:
    flat = costs_of({1: 1.0, 2: 1.0, 5: 1.05, 9: 1.1}, 0.02)
    steep = costs_of({1: 1.0, 2: 1.5, 5: 3.5, 9: 7.0}, 0.3)
    lengths = [best_length(ColdTrial("", *GIVEN, m.costs, m.draft)) for m in (flat, steep)]
    assert lengths == [8, 1]
    assert best_length(None) == 4


def test_thread_counts_are_few_and_sensible() -> None:
    for physical, logical in ((1, 1), (1, 2), (2, 2), (2, 4), (8, 16), (24, 32), (64, 128)):
        counts = thread_counts(Cores(physical, logical, logical))
        assert len(counts) <= 4 and physical not in counts and all(1 <= n <= logical for n in counts)


def test_energy(tmp_path: Path) -> None:
    assert read_energy(tmp_path) is None
    for name, counter in (("intel-rapl:0", 900_000), ("intel-rapl:1", 10), ("intel-rapl:0:0", 7)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "energy_uj").write_text(f"{counter}\n")
        (folder / "max_energy_range_uj").write_text("1000000\n")
    before = read_energy(tmp_path)
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("100000")
    (tmp_path / "intel-rapl:1" / "energy_uj").write_text("500010")
    # The first has started over, and parts of a package do not count twice.
    assert joules_between(before, read_energy(tmp_path)) == pytest.approx(0.7)
    (tmp_path / "intel-rapl:1" / "energy_uj").unlink()
    assert joules_between(before, read_energy(tmp_path)) is None
    assert joules_between(None, before) is None


def test_conditions_are_said(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, workloads=(workload("own", 1),))
    host = replace(read_host(), power="battery")
    notes = condition_notes(plan, (10.0, 7.0), host, True, True)
    assert len(notes) == 4
    for word in ("battery", "slowed itself down", "30% slower", "single prompt"):
        assert any(word in note for note in notes)
    assert condition_notes(plan_of(tmp_path), (10.0, 10.1), replace(host, power="mains"), None, True) == ()
