"""The estimate: worked examples, refusals in words, and predictions from a run beside what it measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.engine.values import SamplingSettings, SpeculationSettings
from localspec.errors import UsageError
from localspec.session.arms import PromptCase, build_arms
from localspec.session.comparison import run_comparison
from localspec.session.estimate import RunEstimate, estimate_run, estimate_stated, shortened
from localspec.session.records import workload_record
from localspec.session.run_document import read_document
from localspec.store.values import Record
from tests.profile_kit import arm, run_of
from tests.profile_kit import workload as a_workload
from tests.scripted_engine import ArmScript, EchoEngine, ScriptedEngine


@pytest.mark.parametrize(
    ("acceptance", "tokens", "speedup"), [("0.7", "2.77", "1.73x"), ("0.4", "1.65", "1.03x"), ("0.3", "1.43", "0.89x")]
)
def test_worked_examples(acceptance: str, tokens: str, speedup: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate", "--acceptance", acceptance, "--n-max", "4", "--draft-cost", "0.15"]) == 0
    out = capsys.readouterr().out
    (row,) = (line.split() for line in out.split("\n") if line.startswith("4"))
    row.remove("*") if "*" in row else None
    assert row[1:4] == [tokens, "1.60", speedup]
    assert " ".join(row[4:]) == "38 %"


def test_the_best_length_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate", "--acceptance", "0.7", "--draft-cost", "0.15", "--n-max", "4", "--json"]) == 0
    captured = capsys.readouterr()
    record = json.loads(captured.out)
    assert record["best_n"] == 3 and [length["n"] for length in record["lengths"]] == [0, 1, 2, 3, 4]
    assert record["lengths"][3]["speedup"] == pytest.approx(1.747, abs=0.001)
    assert "Best: draft 3 tokens." in captured.err
    assert run(["estimate", "--acceptance", "0.1", "--draft-cost", "0.5"]) == 0
    assert "No length pays: leave drafts off." in capsys.readouterr().out


def test_verify_costs_may_be_one_or_one_for_each_length() -> None:
    flat = estimate_stated(0.8, 3, 0.1, (1.5,))
    assert [length.steps for length in flat] == pytest.approx([1.0, 1.6, 1.7, 1.8])
    stair = estimate_stated(0.8, 3, 0.1, (1.0, 1.2, 2.0, 9.0))
    assert [length.steps for length in stair] == pytest.approx([1.0, 1.1, 1.4, 2.3])
    assert estimate_stated(0.8, 3, 0.1)[3].steps == pytest.approx(1.3)


def test_verify_costs_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["estimate", "--acceptance", "0.9", "--draft-cost", "0", "--n-max", "3", "--json"]
    for costs in (["--verify-cost", "1,1.5,3"], ["--verify-cost", "1", "--verify-cost", "1.5", "--verify-cost=3"]):
        assert run([*command, *costs]) == 0
        record = json.loads(capsys.readouterr().out)
        assert [length["steps"] for length in record["lengths"]] == [1.0, 1.0, 1.5, 3.0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"--acceptance": "1.5"}, "An acceptance of 1.5 makes no sense"),
        ({"--acceptance": "70"}, "share of draft tokens"),
        ({"--acceptance": "nan"}, "makes no sense"),
        ({"--acceptance": "-0.1"}, "makes no sense"),
        ({"--draft-cost": "-1"}, "A draft cost of -1 makes no sense"),
        ({"--draft-cost": "inf"}, "makes no sense"),
        ({"--n-max": "0"}, "A draft of 0 tokens makes no sense"),
        ({"--n-max": "1000000000"}, "makes no sense"),
        ({"--verify-cost": "0"}, "A verify cost of 0 makes no sense"),
        ({"--verify-cost": "1,nan,1,1"}, "makes no sense"),
        ({"--verify-cost": "1,1.1"}, "There are 2 verify costs, but drafts of up to 4 tokens"),
        ({"--verify-cost": "cheap"}, "is not a number"),
        ({"--acceptance": None}, "Give --acceptance and --draft-cost"),
        ({"--run": "last"}, "With --run, acceptance and costs come from the run"),
        ({"--arm": "draft"}, "give one with --run"),
    ],
)
def test_nonsense_is_refused_in_words(
    options: dict[str, str | None], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stated = {"--acceptance": "0.7", "--draft-cost": "0.15", "--n-max": "4", **options}
    words = [f"{name}={value}" for name, value in stated.items() if value is not None]
    assert run(["estimate", *words]) == 2
    captured = capsys.readouterr()
    assert said in captured.err and captured.out == ""


@given(st.floats(0, 1), st.integers(1, 32), st.floats(0, 5), st.floats(0.1, 5))
def test_at_break_even_nothing_is_gained(acceptance: float, n_max: int, draft_cost: float, verify_cost: float) -> None:
    for length in estimate_stated(acceptance, n_max, draft_cost, (verify_cost,))[1:]:
        if length.break_even is None:
            assert length.speedup < 1.0
        elif acceptance > length.break_even + 1e-6:
            assert length.speedup > 1.0 - 1e-9
        elif acceptance < length.break_even - 1e-6:
            assert length.speedup < 1.0 + 1e-9


# From a run


async def measured(script: ArmScript, n_max: int = 4, method: str = "draft") -> Record:
    """Return a workload that the scripted engine measured: plain steps of 0.01 s, and rounds as scripted."""
    result = await run_comparison(
        ScriptedEngine(scripts={"draft": script, "ngram": script}),
        "edit",
        (PromptCase("one", text="One."),),
        build_arms(("off", method), SpeculationSettings(n_max=n_max)),  # type: ignore[arg-type]
        SamplingSettings(),
        201,
        lambda progress: None,
    )
    return workload_record(result)


def estimates(*workloads: Record, **choice: str) -> tuple[RunEstimate, ...]:
    return estimate_run(read_document(run_of(*workloads)), **choice)


async def test_costs_and_acceptances_are_read_off_the_rounds() -> None:
    # Rounds accept 4, 2 and 0 of 4 drafted tokens in turn; a draft step is a tenth of a plain one, a check 1.5.
    script = ArmScript(accepted=(4, 2, 0), draft_step_s=0.001, verify_cost=1.5)
    (estimate,) = estimates(await measured(script))
    assert estimate.draft_cost == pytest.approx(0.1, rel=0.02)
    assert estimate.verify_costs[3] == pytest.approx(1.5, rel=0.02)
    assert estimate.acceptance == pytest.approx((2 / 3, 1.0, 0.5, 1.0), abs=0.03)
    assert estimate.is_measured(4) and not estimate.is_measured(2)
    assert estimate.best.n == 4


def trial(name: str, drafted: list[int], total_s: list[float], draft_s: list[float]) -> Record:
    return {"arm": name, "is_closing": False, "rounds": {"drafted": drafted, "total_s": total_s, "draft_s": draft_s}}


def test_costs_that_were_not_seen_lie_between_their_neighbours() -> None:
    drafts = arm(
        "draft",
        "draft",
        1.2,
        num_draft_tokens=24,
        draft_s=0.024,
        conditional_acceptance_by_position=[0.5, 0.5, None, None],
    )
    plain = trial("off", [0] * 9, [9.0] + [0.01] * 8, [0.0] * 9)
    # One slow round of the machine changes nothing.
    drafted = trial("draft", [0] + [4] * 6, [9.0, 5.0] + [0.024] * 5, [0.0, 1.0] + [0.004] * 5)
    (estimate,) = estimates(a_workload("edit", drafts, trials=[plain, drafted]))
    assert estimate.draft_cost == pytest.approx(0.1)
    assert estimate.verify_costs == pytest.approx((1.25, 1.5, 1.75, 2.0))
    assert estimate.num_rounds == (0, 0, 0, 0, 6)
    # Positions that no draft reached are taken for like the last one that was.
    assert estimate.acceptance == (0.5, 0.5, 0.5, 0.5)


async def test_the_prediction_stands_beside_the_measurement() -> None:
    (estimate,) = estimates(await measured(ArmScript(accepted=(3, 1), draft_step_s=0.002, verify_cost=1.2)))
    assert estimate.predicted is not None and estimate.measured is not None
    # The scripted engine is just the cost model, so that they agree but for the ends of the answers.
    assert estimate.difference == pytest.approx(0.0, abs=0.03)
    assert estimate.predicted == pytest.approx(3.0 / 2.0, rel=0.04)


async def test_plain_steps_between_the_drafts_are_reckoned_with() -> None:
    script = ArmScript(accepted=(4,), draft_step_s=0.0, verify_cost=1.0, drafts_every=4)
    (estimate,) = estimates(await measured(script, method="ngram"))
    assert estimate.lengths[4].speedup == pytest.approx(5.0, rel=0.01)
    # One round of four gives five tokens, the others one: 8 tokens for 4 steps.
    assert estimate.predicted == pytest.approx(2.0, rel=0.05)
    assert estimate.difference == pytest.approx(0.0, abs=0.05)


async def test_runs_that_kept_no_drafting_times_are_read_too() -> None:
    entry = await measured(ArmScript(accepted=(2,), draft_step_s=0.001, verify_cost=1.3))
    for trial in entry["trials"]:
        for name in ("draft_s", "verify_s", "sample_s", "at_s"):
            trial["rounds"].pop(name, None)
    (estimate,) = estimates(entry)
    assert estimate.verify_costs[3] == pytest.approx(1.3, rel=0.02)


async def test_workload_and_arm_can_be_chosen() -> None:
    entry = await measured(ArmScript(accepted=(2,)))
    chat = {**entry, "name": "chat"}
    assert [estimate.workload for estimate in estimates(entry, chat)] == ["edit", "chat"]
    assert [estimate.workload for estimate in estimates(entry, chat, workload="CHAT", arm="Draft")] == ["chat"]
    for choice, said in (({"workload": "x"}, "no workload 'x'"), ({"arm": "off"}, "no arm with drafts 'off'")):
        with pytest.raises(UsageError, match=said):
            estimates(entry, **choice)


def test_a_run_that_drafted_nothing_gives_no_estimate() -> None:
    silent = arm("ngram", "ngram", 1.0, num_draft_tokens=0, draft_s=0.0)
    with pytest.raises(UsageError, match="Nothing was drafted"):
        estimates(a_workload("edit", silent))
    with pytest.raises(UsageError, match="Nothing was measured with drafts"):
        estimates(a_workload("edit"))


async def test_no_estimate_is_made_for_lengths_that_were_not_drafted() -> None:
    (estimate,) = estimates(await measured(ArmScript(accepted=(2,))))
    assert [length.n for length in shortened(estimate, 2).lengths] == [0, 1, 2]
    for n_max in (0, 5, 99):
        with pytest.raises(UsageError, match="would be a guess"):
            shortened(estimate, n_max)


def test_the_command_reads_the_last_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATA", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"LOCALSPEC_{name}", str(tmp_path / name.lower()))
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF")
    assert run(["estimate", "--run", "last"]) == 2
    assert "No run is kept yet" in capsys.readouterr().err
    bench = ["bench", str(model), "--workload", "edit", "--workload", "chat", "--max-tokens", "40"]
    assert run(bench, Services(EchoEngine)) == 0
    capsys.readouterr()
    assert run(["estimate", "--run", "last", "--json"]) == 0
    captured = capsys.readouterr()
    record: dict[str, Any] = json.loads(captured.out)
    workloads = [entry["workload"] for entry in record["estimates"]]
    assert record["run_id"] == 1 and list(dict.fromkeys(workloads)) == ["edit", "chat"]
    for entry in record["estimates"]:
        assert entry["difference"] == pytest.approx(entry["predicted"] / entry["measured"] - 1.0)
        assert len(entry["lengths"]) == len(entry["verify_costs"]) + 1
    assert "Predicted" in captured.err and "Measured" in captured.err and "if every round drafted" in captured.err
    assert run(["estimate", "--run", "1", "--workload", "chat", "--n-max", "2"]) == 0
    out = capsys.readouterr().out
    assert "chat" in out and "edit" not in out
    assert run(["estimate", "--run", "1", "--n-max", "30"]) == 2
