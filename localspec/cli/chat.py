"""`localspec chat`: a plain line-mode chat. Answers go to stdout, everything else to stderr."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import cast

from localspec.cli.answer import PREFILL_PATIENCE_S, AnswerStream
from localspec.cli.failures import EXIT_DONE, say_failure, say_notice
from localspec.cli.figures import bytes_text, milliseconds_text, percent_text, rate_text
from localspec.cli.heading import model_text
from localspec.cli.interruption import Interruptions
from localspec.cli.options import ChatChoice
from localspec.cli.screen import hidden_keys, notices_console, progress, results_console, say
from localspec.cli.services import Services
from localspec.cli.text import one_line
from localspec.engine.events import LoadProgress, ModelsLoaded
from localspec.engine.interface import Engine
from localspec.engine.values import FinishReason, Method, SpeculationSettings, SpeculationState
from localspec.errors import EngineDiedError, LocalspecError, UsageError
from localspec.session.arguments import named_model
from localspec.session.conversation import Answer, Conversation
from localspec.session.load_plan import LoadPlan, plan_load
from localspec.session.loading import (
    OnLoadProgress,
    context_notes,
    context_settings,
    draft_context_settings,
    load_models,
    reserve_bytes,
    sampling_settings,
    speculation_settings,
)
from localspec.session.memory_use import check_use, used_lines
from localspec.settings import Flags, Settings, load_settings

HELP = """\
/on           draft again, in the way that was last in use
/off          draft nothing
/method NAME  off, draft or ngram
/clear        forget the conversation
/memory       what the models take in memory, and what was planned
/help         these lines
/quit         leave; Ctrl-D does the same
Ctrl-C stops an answer."""

_ENDINGS: dict[FinishReason, str] = {
    "stop": "",
    "stop_string": "",
    "length": "cut at --max-tokens",
    "context_full": "the context is full: /clear starts over, --n-ctx gives more room",
    "cancelled": "stopped",
}


def run_chat(services: Services, choice: ChatChoice, flags: Flags) -> int:
    """Chat until /quit or the end of the input, and return the exit code."""
    settings = load_settings(flags)
    method = _first_method(choice, settings)
    if sys.stdin is None:
        raise LocalspecError("Standard input is closed.", "Chat in a terminal, or send the questions through a pipe.")
    # Each answer is one run, so that Ctrl-C cancels the answer in it and nothing else.
    with Interruptions(say_notice) as interruptions:
        engine = services.make_engine()
        try:
            chat = _Chat(interruptions, engine, choice, settings, method)
            chat.load()
            chat.talk()
        finally:
            interruptions.run(engine.close(), is_stoppable=False)
    return EXIT_DONE


def _first_method(choice: ChatChoice, settings: Settings) -> Method:
    method = cast("Method | None", choice.method)
    if method is None and "method" in settings.draft.model_fields_set:
        method = settings.draft.method
    if method is None:
        method = "draft" if choice.draft is not None else "ngram"
    if method == "draft" and choice.draft is None:
        raise UsageError("Drafting with a model needs a model.", "Give one with --draft MODEL, or use --method ngram.")
    return method


def status_line(answer: Answer) -> str:
    """Return what an answer cost, in one line."""
    parts = [
        f"{answer.stats.num_tokens} tokens",
        f"decode {rate_text(answer.latency.decode_tps)} tokens/s",
        f"first text after {milliseconds_text(answer.latency.ttft_s)}",
    ]
    if answer.speculation is not None and answer.speculation.is_on:
        parts.append(f"acceptance {percent_text(answer.stats.acceptance_rate)}")
    if answer.speculation is not None:
        parts.append(speculation_line(answer.speculation))
    if ending := _ENDINGS[answer.finish_reason]:
        parts.append(ending)
    return one_line(" | ".join(parts))


def speculation_line(state: SpeculationState) -> str:
    """Return whether speculation is on, and with what, or why not."""
    if state.is_on:
        return one_line(f"speculation ON ({state.drafter}, n_max {state.settings.n_max})")
    return one_line(f"speculation OFF ({state.reason or 'switched off'})")


class _Chat:
    def __init__(
        self, interruptions: Interruptions, engine: Engine, choice: ChatChoice, settings: Settings, method: Method
    ) -> None:
        self._interruptions = interruptions
        self._engine = engine
        self._target = named_model(choice.target, settings).path
        self._draft = None if choice.draft is None else named_model(choice.draft, settings).path
        self._settings = settings
        self._is_forced = choice.is_forced
        self._memory: tuple[LoadPlan, ModelsLoaded] | None = None
        self._method = method
        self._last_method: Method = method if method != "off" else ("draft" if choice.draft else "ngram")
        self._conversation = Conversation(engine, sampling_settings(settings), choice.max_tokens, choice.system)

    def load(self) -> None:
        """Load the models, and say what is loaded."""
        console = notices_console()
        with progress(console) as report:

            def on_progress(event: LoadProgress) -> None:
                report(f"loading the {event.model}", event.fraction, "")

            memory, loaded = self._interruptions.run(self._load(on_progress))
        self._memory = (memory, loaded)
        _say(loaded_line(loaded))
        for note in context_notes(loaded):
            _say(f"{note.severity}: {note.text} {note.advice}")
        for line in (*memory.notes, *check_use(memory, loaded)):
            _say(one_line(line))
        if loaded.draft_failure:
            _say(f"The draft model is not in use: {loaded.draft_failure}")

    async def _load(self, on_progress: OnLoadProgress) -> tuple[LoadPlan, ModelsLoaded]:
        memory = await plan_load(
            self._engine,
            self._target,
            self._draft,
            context_settings(self._settings),
            draft_context_settings(self._settings),
            reserve_bytes=reserve_bytes(self._settings),
            is_forced=self._is_forced,
        )
        loaded = await load_models(
            self._engine,
            self._target,
            self._draft,
            memory.context,
            self._speculation(self._method),
            on_progress,
            memory.draft_context,
        )
        return memory, loaded

    def talk(self) -> None:
        """Answer line after line."""
        while (line := _read_line(self._interruptions)) is not None:
            text = line.strip()
            if text in ("/quit", "/exit"):
                return
            try:
                if text.startswith("/"):
                    self._obey(text)
                elif text:
                    self._answer(text)
            except EngineDiedError as error:
                say_failure(error)
                self._load_again()
            except LocalspecError as error:
                say_failure(error)
            except KeyboardInterrupt:
                _say("Stopped.")

    def _load_again(self) -> None:
        _say("Loading the models again.")
        try:
            self.load()
        except KeyboardInterrupt:
            _say("Stopped. The models are loaded with the next message.")

    def _answer(self, text: str) -> None:
        stream = AnswerStream(sys.stdout, notices_console(), results_console().width if sys.stdout.isatty() else None)
        try:
            with hidden_keys():
                answer = self._interruptions.run(self._ask(text, stream))
        finally:
            stream.close()
        _say(status_line(answer))

    async def _ask(self, text: str, stream: AnswerStream) -> Answer:
        # A prompt that is short is read before anybody could read the line on it.
        timer = asyncio.get_running_loop().call_later(PREFILL_PATIENCE_S, stream.show_prefill)
        try:
            return await self._conversation.ask(text, stream.show, stream.note_prefill)
        finally:
            timer.cancel()

    def _obey(self, command: str) -> None:
        name, _, argument = command.partition(" ")
        argument = argument.strip()
        if name == "/help":
            _say(HELP)
        elif name == "/memory":
            self._show_memory()
        elif name == "/clear":
            self._conversation.clear()
            _say("The conversation is forgotten.")
        elif name == "/off":
            self._switch("off")
        elif name == "/on":
            self._switch(self._last_method)
        elif name == "/method" and argument in ("off", "draft", "ngram"):
            self._switch(cast(Method, argument))
        elif name == "/method":
            _say("There are three methods: off, draft and ngram.")
        else:
            _say(f"There is no command {one_line(name)}. /help shows all.")

    def _show_memory(self) -> None:
        if self._memory is None:
            _say("No models are loaded.")
            return
        plan, loaded = self._memory[0].plan, self._memory[1]
        for device, planned, taken in used_lines(plan, loaded):
            _say(one_line(f"{device}: {bytes_text(taken)} taken, {bytes_text(planned)} planned"))
        if plan is None and loaded.footprint is None:
            _say("It is not known; the log file says why.")

    def _switch(self, method: Method) -> None:
        configured = self._interruptions.run(self._conversation.configure(self._speculation(method)))
        self._method = method
        if method != "off":
            self._last_method = method
        _say(speculation_line(configured.speculation))

    def _speculation(self, method: Method) -> SpeculationSettings:
        return speculation_settings(self._settings, method)


def loaded_line(loaded: ModelsLoaded) -> str:
    """Return what is loaded, by file names, in one line."""
    draft = f", draft {model_text(loaded.draft)}" if loaded.draft is not None else ""
    state = speculation_line(loaded.speculation)
    return one_line(f"target {model_text(loaded.target)}{draft}, context {loaded.target.n_ctx} | {state}")


def _read_line(interruptions: Interruptions) -> str | None:
    """Return the next line of the input, or None at its end."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        with interruptions.allowed():
            return sys.stdin.readline() or None
    # Lets input() edit its line, and show again what was typed while keys were hidden.
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401
    while True:
        try:
            with interruptions.allowed():
                return input("> ")
        except EOFError:
            print()
            return None
        except KeyboardInterrupt:
            print()
            _say("Ctrl-D or /quit leaves.")


def _say(text: str) -> None:
    say(notices_console(), text, style="dim")
