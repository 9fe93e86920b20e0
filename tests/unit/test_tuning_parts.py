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
from localspec.metrics.comparison import judge
from localspec.metrics.statistics import Estimate
from localspec.session.condition_marks import condition_marks, marks_of_record, marks_sentence
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


async def screened(measure: Loads, given: Contexts = GIVEN, **knobs: object) -> ColdChoice:
    made = ColdKnobs(CORES, has_gpu=False, has_draft=True, **knobs)  # type: ignore[arg-type]
    return await screen(measure, given, made, lambda: True, lambda what: None)


async def test_each_kind_of_step_gets_its_own_threads() -> None:
    choice = await screened(Loads({3: 0.8}, {8: 0.7}, {}))
    assert choice.changes == ("threads 3", "threads-batch 8")
    for context in (choice.context, choice.draft_context):
        assert (context.n_threads, context.n_threads_batch) == (3, 8)
    assert choice.off_gain == pytest.approx(1 / 0.8)


SLOW_DRAFT = {2: 0.2, **dict.fromkeys((1, 3, 4, 8), 0.8)}
"""Of draft steps, by threads: two are much the best."""


async def test_the_draft_gets_threads_of_its_own() -> None:
    # Two threads make a slow draft much faster, and would cost the target a little.
    choice = await screened(Loads({2: 1.01}, {}, SLOW_DRAFT))
    assert choice.changes == ("draft threads 2",) == choice.of_draft
    assert choice.context == GIVEN[0]
    # Its prompt is read in wide steps, with the threads that those have.
    assert (choice.draft_context.n_threads, choice.draft_context.n_threads_batch) == (2, 4)
    # Nothing of that is a gain for those who draft nothing.
    assert choice.off_gain is None


async def test_target_batch_and_draft_are_each_given_what_is_best_for_them() -> None:
    choice = await screened(Loads({3: 0.8}, {8: 0.7}, SLOW_DRAFT))
    assert choice.changes == ("threads 3", "threads-batch 8", "draft threads 2")
    assert (choice.context.n_threads, choice.context.n_threads_batch) == (3, 8)
    assert (choice.draft_context.n_threads, choice.draft_context.n_threads_batch) == (2, 8)
    assert choice.off_gain == pytest.approx(1 / 0.8)


async def test_a_draft_that_hardly_gains_stays_with_the_targets_threads() -> None:
    choice = await screened(Loads({}, {}, {2: 0.19, 4: 0.2}))
    assert choice.changes == () and choice.draft_context == GIVEN[1]


async def test_one_number_for_both_where_the_drafts_own_is_not_searched() -> None:
    choice = await screened(Loads({2: 1.01}, {}, SLOW_DRAFT), fixed=frozenset({"draft_threads"}))
    assert choice.context.n_threads == choice.draft_context.n_threads == 2


async def test_threads_of_the_draft_that_were_stated_stay() -> None:
    given = (ContextSettings(), ContextSettings(n_threads=1))
    measure = Loads({3: 0.8}, {}, SLOW_DRAFT)
    choice = await screened(measure, given)
    assert choice.changes == ("threads 3", "threads-batch 4") and choice.draft_context.n_threads == 1
    assert {draft.n_threads for _, draft in measure.tried} == {1}


async def test_without_a_draft_or_with_stated_threads_none_are_searched_for_it() -> None:
    knobs = ColdKnobs(CORES, has_gpu=False, has_draft=False)
    measure = Loads({3: 0.8}, {}, {})
    choice = await screen(measure, GIVEN, knobs, lambda: True, lambda what: None)
    assert choice.of_draft == () and choice.changes[0] == "threads 3"
    stated = Loads({3: 0.8}, {}, SLOW_DRAFT)
    choice = await screened(stated, fixed=frozenset({"threads"}))
    assert choice.changes == () and {(t.n_threads, d.n_threads) for t, d in stated.tried} == {(0, 0)}


class BesideGpu(Loads):
    """The draft is slow on the GPU, and on the processor fast with three threads only."""

    async def __call__(self, target: ContextSettings, draft: ContextSettings) -> StepsMeasured:
        self.tried.append((target, draft))
        on_processor = {4: 0.4, 3: 0.2}.get(draft.n_threads or 4, 0.6)
        return costs_of({1: 1.0, 2: 1.2, 3: 1.3, 5: 1.5, 9: 2.0}, 0.8 if draft.n_gpu_layers else on_processor)


async def test_a_draft_on_the_processor_gets_the_threads_that_suit_it_there() -> None:
    measure = BesideGpu({}, {}, {})
    knobs = ColdKnobs(CORES, has_gpu=True, has_draft=True)
    choice = await screen(measure, GIVEN, knobs, lambda: True, lambda what: None)
    assert choice.changes == ("draft on the processor", "draft threads 3") == choice.of_draft
    assert (choice.draft_context.n_gpu_layers, choice.draft_context.n_threads) == (0, 3)
    # On the GPU they were not tried, since they hardly matter there.
    assert not any(draft.n_threads == 3 and draft.n_gpu_layers for _, draft in measure.tried)


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
    notes = condition_notes(plan, (("a", 10.0), ("b", 20.0), ("a", 7.0)), True, True, True)
    assert len(notes) == 4
    for word in ("battery", "slowed itself down", "30 % slower", "single prompt"):
        assert any(word in note for note in notes)
    assert condition_notes(plan_of(tmp_path), (("a", 10.0), ("a", 10.1), ("b", 5.0)), False, None, True) == ()


def test_marks_name_what_was_not_as_it_should_be() -> None:
    assert (
        condition_marks("mains", False, [(("a", 10.0), ("a", 10.5), ("b", 3.0))])
        == condition_marks(None, None, [])
        == ()
    )
    assert condition_marks("battery", True, [(("a", 10.0), ("a", 10.5)), (("a", 10.0), ("a", 7.0))]) == (
        "on battery",
        "while the hardware slowed itself down",
        "while speed without drafts became 30 % slower",
    )
    assert marks_sentence(("on battery",)) == "Measured on battery: it may be otherwise on mains."
    assert marks_sentence(condition_marks("mains", True, [])).endswith("otherwise on a machine that is cool and quiet.")
    assert marks_sentence(()) == ""


def test_marks_of_a_kept_run_are_those_of_the_workloads_that_count() -> None:
    def entry(name: str, last_tps: float) -> dict[str, object]:
        trials = [{"arm": "off", "place": place, "decode_tps": tps} for place, tps in ((5, last_tps), (0, 10.0))]
        return {"name": name, "arms": [{"name": "off", "method": "off"}], "trials": trials}

    device = {"power_source": "battery", "throttling": "none"}
    document = {"device": device, "workloads": [entry("chat", 10.1), entry("edit", 5.5)]}
    assert marks_of_record(document, ["chat"]) == ("on battery",)
    assert marks_of_record(document, ["chat", "edit"])[-1] == "while speed without drafts became 45 % slower"
    assert marks_of_record({"device": None, "workloads": [7]}, ["chat"]) == ()
