"""Answers of the real engine on tiny random models: the same text with any drafter, and clean caches throughout."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localspec.engine.drafting.draft_model import DraftModelDrafter
from localspec.engine.drafting.drafter import Drafter
from localspec.engine.drafting.ngram import NgramDrafter
from localspec.engine.events import Event, RoundFinished
from localspec.engine.llama.abort import AbortFlag
from localspec.engine.llama.loading import LoadedModel
from localspec.engine.requests import Generate
from localspec.engine.values import Message, SamplingSettings, SpeculationSettings
from localspec.errors import TemplateError, UsageError
from tests.engine_kit import KnownText, generate, load_model
from tests.tiny_gguf import STRICT, write_llama

RELAXED = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WARM = SamplingSettings(temperature=0.8, seed=7)


def ask(tokens: Sequence[int], max_tokens: int = 40, **more: object) -> Generate:
    return Generate(id=1, tokens=tuple(tokens), max_tokens=max_tokens, is_fresh=True, **more)  # type: ignore[arg-type]


def drafters(target: LoadedModel, draft: LoadedModel, plain: Sequence[int]) -> list[Drafter]:
    return [
        KnownText(plain),
        KnownText(plain, wrong_every=1),
        KnownText(plain, wrong_every=3),
        NgramDrafter(1, 3),
        DraftModelDrafter(draft.context, "draft", 0.0),
        DraftModelDrafter(draft.context, "draft", 0.6),
    ]


@RELAXED
@given(
    prompt=st.lists(st.integers(3, 319), min_size=1, max_size=30),
    which=st.integers(0, 5),
    n_max=st.integers(1, 16),
    temperature=st.sampled_from([0.0, 0.8]),
    seed=st.integers(1, 5),
)
def test_any_drafter_gives_the_text_of_plain_decoding(
    tiny_target: LoadedModel,
    tiny_draft: LoadedModel,
    prompt: list[int],
    which: int,
    n_max: int,
    temperature: float,
    seed: int,
) -> None:
    request = ask(prompt, sampling=SamplingSettings(temperature=temperature, seed=seed))
    plain = generate(tiny_target, request)
    drafter = drafters(tiny_target, tiny_draft, plain.ids)[which]
    spec = generate(tiny_target, request, drafter, SpeculationSettings(method="draft", n_max=n_max))
    assert spec.ids == plain.ids
    assert spec.text == plain.text
    num_passes, num_cut = len(spec.rounds), sum(done.num_cut for done in spec.rounds)
    assert len(spec.ids) == num_passes + spec.num_accepted - num_cut == 40


def test_drafts_are_really_accepted_and_really_rejected(tiny_target: LoadedModel, tiny_draft: LoadedModel) -> None:
    plain = generate(tiny_target, ask([10, 20, 30]))
    right, wrong, draft_model = (
        generate(tiny_target, ask([10, 20, 30]), drafter)
        for drafter in (drafters(tiny_target, tiny_draft, plain.ids)[index] for index in (0, 1, 4))
    )
    assert (right.num_accepted, len(right.rounds)) == (7 * 4 + 3, 9)
    assert (wrong.num_accepted, len(wrong.rounds)) == (0, 40)
    drafted = sum(len(done.drafted) for done in draft_model.rounds)
    assert 0 < draft_model.num_accepted < drafted


@pytest.mark.parametrize("sampling", [
    SamplingSettings(repeat_penalty=1.3, repeat_last_n=16),
    SamplingSettings(temperature=0.8, seed=3, presence_penalty=0.5, frequency_penalty=0.2),
    SamplingSettings(temperature=1.2, seed=4, top_k=0, top_p=1.0, min_p=0.0),
    SamplingSettings(grammar='root ::= ("ab" | "cd" | "ee ")+'),
])  # fmt: skip
def test_the_whole_chain_gives_the_same_text_with_drafts(tiny_target: LoadedModel, sampling: SamplingSettings) -> None:
    request = ask([40, 41, 42, 43], sampling=sampling)
    plain = generate(tiny_target, request)
    for wrong_every in (0, 2):
        spec = generate(tiny_target, request, KnownText(plain.ids, wrong_every), SpeculationSettings("draft", n_max=5))
        assert spec.ids == plain.ids
        assert spec.num_accepted > 0


def test_rounds_tell_what_the_drafts_said(tiny_target: LoadedModel) -> None:
    plain = generate(tiny_target, ask([10, 20, 30]))
    spec = generate(tiny_target, ask([10, 20, 30]), KnownText(plain.ids, 2), SpeculationSettings("draft", n_max=5))
    piece = tiny_target.model.vocabulary.piece
    for done in spec.rounds:
        assert done.drafted_texts == tuple(piece(token).decode("utf-8", "replace") for token in done.drafted)
    assert any(done.drafted_texts for done in spec.rounds)


def test_another_seed_gives_another_text(tiny_target: LoadedModel) -> None:
    texts = {generate(tiny_target, ask([9], sampling=SamplingSettings(1.5, seed=seed))).text for seed in (1, 2, 3)}
    assert len(texts) == 3


def test_caches_hold_the_accepted_text_after_every_round(tiny_target: LoadedModel, tiny_draft: LoadedModel) -> None:
    text = [10, 20, 30]

    def check(event: Event) -> None:
        if isinstance(event, RoundFinished):
            text.extend(token.id for token in event.emitted)
            cached, drafted = list(tiny_target.context.tokens), list(tiny_draft.context.tokens)
            assert cached == text[:-1] and event.n_past == len(cached)
            assert drafted == text[: len(drafted)]

    drafter = DraftModelDrafter(tiny_draft.context, "draft", 0.0)
    answer = generate(tiny_target, ask(text), drafter, on_event=[check])
    assert answer.num_accepted > 0


@pytest.mark.parametrize("length", [240, 254, 255, 256])
@pytest.mark.parametrize("n_max", [1, 16])
def test_a_full_context_ends_the_text_and_keeps_it(tiny_target: LoadedModel, length: int, n_max: int) -> None:
    prompt = [3 + index % 250 for index in range(length)]
    plain = generate(tiny_target, ask(prompt, max_tokens=100))
    drafter = KnownText(plain.ids, wrong_every=5)
    spec = generate(tiny_target, ask(prompt, max_tokens=100), drafter, SpeculationSettings("draft", n_max=n_max))
    assert spec.finished.finish_reason == plain.finished.finish_reason == "context_full"
    assert len(spec.ids) == 257 - length
    assert spec.ids == plain.ids
    assert spec.finished.n_past == 256


def test_a_prompt_beyond_the_context_is_refused_with_both_numbers(tiny_target: LoadedModel) -> None:
    with pytest.raises(UsageError, match="257 tokens, and the context holds 256"):
        generate(tiny_target, ask([5] * 257))


SEPARATED = (
    "{% for message in messages %}<|eot|>{{ message.role }}:{{ message.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|eot|>assistant:{% endif %}"
)


def test_a_second_turn_reads_only_what_is_new(
    tmp_path_factory: pytest.TempPathFactory, tiny_draft: LoadedModel
) -> None:
    path = write_llama(tmp_path_factory.mktemp("turns") / "turns.gguf", template=SEPARATED, can_end=False)
    loaded = load_model(path)
    # Letters that the tokeniser would join to pairs: the answer's own tokens must be kept for its cache to be of use.
    spelled = SamplingSettings(grammar="root ::= [etaoin]{30}")
    try:
        drafter = DraftModelDrafter(tiny_draft.context, "draft", 0.0)
        turns = [Message("user", "one two three")]
        for number, question in enumerate(("four", "five", "six")):
            first = generate(loaded, Generate(1, tuple(turns), max_tokens=60, sampling=spelled), drafter)
            assert len(first.text) == 30
            turns += [Message("assistant", first.text), Message("user", question)]
            second = generate(loaded, Generate(2, tuple(turns), max_tokens=1), drafter)
            num_cached = len(first.started.prompt_tokens) + len(first.ids) - 1
            num_new = len(second.started.prompt_tokens) - second.started.num_reused
            assert second.started.num_reused == num_cached, number
            assert num_new < 25
            assert [event.num_total for event in second.prefills if event.model == "target"] == [num_new]
            assert sum(event.num_done for event in second.prefills if event.model == "draft") <= num_new + 5
            spelled_prompt = b"".join(map(loaded.model.vocabulary.piece, second.started.prompt_tokens))
            assert spelled_prompt.decode().endswith(f"assistant:{first.text}user:{question}assistant:")
            turns.append(Message("assistant", second.text))
            turns.append(Message("user", "and"))
    finally:
        loaded.close()


def test_a_changed_history_is_read_again_from_the_change(tiny_target: LoadedModel) -> None:
    generate(tiny_target, ask(range(10, 60), max_tokens=5))
    changed = [*range(10, 30), 99, *range(31, 60)]
    answer = generate(tiny_target, Generate(2, tokens=tuple(changed), max_tokens=5))
    assert answer.started.num_reused == 20
    assert answer.ids == generate(tiny_target, ask(changed, max_tokens=5)).ids


def test_a_fresh_answer_reads_the_whole_prompt_with_both_models(
    tiny_target: LoadedModel, tiny_draft: LoadedModel
) -> None:
    drafter = DraftModelDrafter(tiny_draft.context, "draft", 0.0)
    for _ in range(2):
        answer = generate(tiny_target, ask(range(10, 60), max_tokens=5), drafter)
        assert {event.model: event.num_total for event in answer.prefills} == {"target": 50, "draft": 50}


def test_the_same_prompt_again_reads_one_token(tiny_target: LoadedModel) -> None:
    first = generate(tiny_target, ask(range(10, 60), max_tokens=5))
    again = generate(tiny_target, Generate(2, tokens=tuple(range(10, 60)), max_tokens=5))
    assert again.started.num_reused == 49
    assert again.ids == first.ids


SAMPLE = "naïve €5 漢字 😀 e\u0301 end"


@pytest.mark.parametrize("n_max", [1, 2, 3, 5, 16])
@pytest.mark.parametrize("wrong_every", [0, 3])
def test_characters_over_token_and_run_borders_are_never_garbled(
    tiny_target: LoadedModel, n_max: int, wrong_every: int
) -> None:
    request = ask([60, 61], max_tokens=80, sampling=SamplingSettings(grammar=f'root ::= "{SAMPLE}"'))
    plain = generate(tiny_target, request)
    assert (plain.text, plain.finished.finish_reason) == (SAMPLE, "stop")
    drafter = KnownText(plain.ids, wrong_every)
    spec = generate(tiny_target, request, drafter, SpeculationSettings("draft", n_max=n_max))
    assert spec.text == SAMPLE
    for done in spec.rounds:
        for token in done.emitted:
            assert "\ufffd" not in token.text


def test_an_answer_cut_inside_a_character_ends_with_one_replacement(tiny_target: LoadedModel) -> None:
    request = ask([60, 61], max_tokens=2, sampling=SamplingSettings(grammar='root ::= "漢字"'))
    assert generate(tiny_target, request).text == "\ufffd"


@pytest.mark.parametrize("n_max", [1, 4, 16])
def test_a_stop_string_inside_an_accepted_run_ends_text_and_count(tiny_target: LoadedModel, n_max: int) -> None:
    grammar = SamplingSettings(grammar='root ::= "hello there, stop here and go on"')
    request = ask([60, 61], max_tokens=80, sampling=grammar, stop=("op he", "never"))
    plain = generate(tiny_target, request)
    whole = generate(tiny_target, ask([60, 61], max_tokens=80, sampling=grammar))
    spec = generate(tiny_target, request, KnownText(whole.ids), SpeculationSettings("draft", n_max=n_max))
    assert spec.text == plain.text == "hello there, st"
    assert spec.finished.finish_reason == "stop_string"
    assert spec.ids == plain.ids
    assert len(spec.ids) < len(whole.ids)
    assert list(tiny_target.context.tokens) == [60, 61, *spec.ids][: len(tiny_target.context.tokens)]


def test_every_end_token_ends_and_can_be_banned(tiny_files: dict[str, object]) -> None:
    loaded = load_model(tiny_files["ending"])  # type: ignore[arg-type]
    try:
        ends = [generate(loaded, ask([seed], max_tokens=200)).finished.finish_reason for seed in range(100, 130)]
        assert "stop" in ends
        banned = generate(loaded, ask([100 + ends.index("stop")], max_tokens=200, ignore_eog=True))
        assert len(banned.ids) == 200
        assert not set(banned.ids) & loaded.model.vocabulary.end_tokens
    finally:
        loaded.close()


def test_cancel_between_rounds_keeps_the_text_and_the_next_prompt_works(
    tiny_target: LoadedModel, tiny_draft: LoadedModel
) -> None:
    drafter = DraftModelDrafter(tiny_draft.context, "draft", 0.0)
    flag = tiny_target.context._abort

    def cancel(event: Event) -> None:
        if isinstance(event, RoundFinished) and event.index == 5:
            flag.set()

    try:
        cut = generate(tiny_target, ask([10, 20, 30]), drafter, on_event=[cancel])
    finally:
        flag.clear()
    assert cut.finished.finish_reason == "cancelled"
    assert len(cut.rounds) == 6
    assert list(tiny_target.context.tokens) == [10, 20, 30, *cut.ids][:-1]
    whole = generate(tiny_target, ask([10, 20, 30]), drafter)
    assert whole.ids[: len(cut.ids)] == cut.ids
    assert whole.ids == generate(tiny_target, ask([10, 20, 30])).ids


def test_cancel_in_the_prefill_stops_there(tiny_target: LoadedModel) -> None:
    flag = tiny_target.context._abort

    def cancel(event: Event) -> None:
        if event.type == "prefill_progress":
            flag.set()

    try:
        cut = generate(tiny_target, ask(range(3, 203)), on_event=[cancel])
    finally:
        flag.clear()
    assert (cut.finished.finish_reason, cut.ids, cut.finished.n_past) == ("cancelled", [], 64)
    whole = generate(tiny_target, Generate(2, tokens=tuple(range(3, 203)), max_tokens=5))
    assert whole.started.num_reused == 64


def test_text_and_conversation_prompts(tiny_target: LoadedModel) -> None:
    raw = generate(tiny_target, Generate(1, text="hello <s> you", max_tokens=2, is_fresh=True))
    chat = generate(tiny_target, Generate(1, (Message("user", "hello"),), max_tokens=2, is_fresh=True))
    vocabulary = tiny_target.model.vocabulary
    assert raw.started.prompt_tokens[0] == vocabulary.bos
    assert raw.started.prompt_tokens.count(vocabulary.bos) == 1
    spelled = b"".join(vocabulary.piece(token) for token in chat.started.prompt_tokens)
    assert spelled == b"<|user|>hello\n<|assistant|>"


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Generate(1, tokens=()), "prompt is empty"),
        (Generate(1, tokens=(99999,)), "99999"),
        (Generate(1, text="x", max_tokens=0), "max_tokens is 0"),
        (Generate(1, text="x", sampling=SamplingSettings(temperature=-1)), "temperature is -1"),
        (Generate(1, text="x", sampling=SamplingSettings(top_p=1.5)), "top_p is 1.5"),
        (Generate(1, text="x", sampling=SamplingSettings(grammar="root ::= (")), "grammar cannot be parsed"),
        (Generate(1, text="x", ignore_eog=True, sampling=SamplingSettings(grammar='root ::= "a"')), "grammar ends"),
    ],
)
def test_a_request_that_cannot_be_carried_out_says_why(
    tiny_target: LoadedModel, request_: Generate, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        generate(tiny_target, request_)
    assert words in caught.value.message
    assert caught.value.hint


def test_a_template_that_objects_is_a_clear_error(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = write_llama(tmp_path_factory.mktemp("strict") / "strict.gguf", template=STRICT)
    loaded = load_model(path)
    try:
        with pytest.raises(TemplateError) as system:
            generate(loaded, Generate(1, (Message("system", "be brief"), Message("user", "hi"))))
        assert "System role not supported" in system.value.message
        assert "no system message" in system.value.hint
        with pytest.raises(TemplateError) as twice:
            generate(loaded, Generate(1, (Message("user", "hi"), Message("user", "hi"))))
        assert "alternation" in twice.value.hint
    finally:
        loaded.close()


HOSTILE = (
    "{% for x in",
    "{{ ''.__class__.__mro__ }}",
    "{{ messages[0].role.nothing.more }}",
    "{{ 1 // 0 }}",
    "{{ " + "(" * 5000 + ")" * 5000 + " }}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
)


@pytest.mark.parametrize("template", HOSTILE, ids=range(len(HOSTILE)))
def test_a_broken_or_hostile_template_is_an_error_not_a_crash(
    tmp_path_factory: pytest.TempPathFactory, template: str
) -> None:
    path = write_llama(tmp_path_factory.mktemp("hostile") / "hostile.gguf", template=template)
    with pytest.raises(TemplateError):
        loaded = load_model(path)
        try:
            generate(loaded, Generate(1, (Message("user", "hi"),)))
        finally:
            loaded.close()


def test_a_template_that_runs_on_is_stopped_by_a_cancel(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = write_llama(tmp_path_factory.mktemp("endless") / "endless.gguf", template=HOSTILE[-1])
    abort = AbortFlag()
    loaded = load_model(path, abort=abort)
    try:
        threading.Timer(0.1, abort.set).start()
        cut = generate(loaded, Generate(1, (Message("user", "hi"),)))
        assert (cut.finished.finish_reason, cut.ids) == ("cancelled", [])
        abort.clear()
        assert len(generate(loaded, ask([10], max_tokens=3)).ids) == 3
    finally:
        loaded.close()


def test_without_a_template_a_plain_transcript_is_used_and_stated(tiny_draft: LoadedModel) -> None:
    assert tiny_draft.info.template == "fallback"
    answer = generate(tiny_draft, Generate(1, (Message("user", "hi"),), max_tokens=2, is_fresh=True))
    pieces = b"".join(map(tiny_draft.model.vocabulary.piece, answer.started.prompt_tokens))
    assert pieces == b"User: hi\n\nAssistant:"
