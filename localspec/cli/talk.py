"""A chat with loaded models: its questions, its answers, and its commands."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

from localspec.catalog.found_model import FoundModel
from localspec.cli.answer import PREFILL_PATIENCE_S, AnswerStream
from localspec.cli.chat_file import write_new
from localspec.cli.chat_lines import loaded_line, speculation_line, status_line
from localspec.cli.chat_markdown import chat_markdown
from localspec.cli.failures import say_failure, say_notice
from localspec.cli.heading import memory_texts, name_of
from localspec.cli.interruption import Interruptions
from localspec.cli.options import DEFAULT_MAX_TOKENS, ChatChoice
from localspec.cli.screen import hidden_keys, notices_console, progress, results_console, say
from localspec.cli.talk_drafting import CHOICES, DraftingChoice, remark, usage
from localspec.cli.talk_drafting import HELP as DRAFTING_HELP
from localspec.cli.talk_input import read_line
from localspec.engine.events import LoadProgress, ModelsLoaded
from localspec.engine.interface import Engine
from localspec.engine.values import Method
from localspec.errors import EngineDiedError, LocalspecError
from localspec.methods import needs_draft
from localspec.session.chat_continuation import Continued
from localspec.session.chat_keeping import ChatKeeper
from localspec.session.chat_record import models_record, tidy_title, unkept_chat
from localspec.session.conversation import Answer, Conversation
from localspec.session.draft_refusal import draft_refusal
from localspec.session.earlier_answers import remembering_notice
from localspec.session.kind_drafting import KindDrafting, settings_by_kind
from localspec.session.load_plan import LoadPlan, plan_load
from localspec.session.loading import (
    OnLoadProgress,
    context_notes,
    context_settings,
    draft_context_settings,
    load_models,
    reserve_bytes,
    sampling_settings,
)
from localspec.session.memory_use import check_use
from localspec.session.pacing_memory import COLD, PacingKeeper, PacingMemory
from localspec.session.plain_text import one_line
from localspec.settings import Settings
from localspec.store.chats import Chats
from localspec.store.values import Record, StoredChat

HELP = f"""\
{DRAFTING_HELP}
/clear        forget the conversation; what comes then is another chat
/title TEXT   call the chat something else in `localspec history`
/save FILE    write the chat to a new file, as Markdown
/memory       what the models take in memory, and what was planned
/help         these lines
/quit         leave; Ctrl-D does the same
Ctrl-C stops an answer."""


class Talk:
    """One chat, from loading the models to the last question."""

    def __init__(
        self,
        interruptions: Interruptions,
        engine: Engine,
        models: tuple[FoundModel, FoundModel | None],
        choice: ChatChoice,
        settings: Settings,
        method: Method,
        chats: Chats | None,
        continued: Continued | None,
    ) -> None:
        self._interruptions = interruptions
        self._engine = engine
        self._models = models
        self._target_word = name_of(models[0], choice.target or "").word
        self._is_continued = continued is not None
        self._target = models[0].path
        self._draft = None if models[1] is None else models[1].path
        self._settings = settings
        self._is_forced = choice.is_forced
        self._memory: tuple[LoadPlan, ModelsLoaded] | None = None
        self._drafting = DraftingChoice(settings, method)
        self._kinds = KindDrafting(settings_by_kind(choice.by_workload))
        self._learnt = PacingKeeper(PacingMemory())
        self._system = choice.system or ""
        self._max_tokens = choice.max_tokens or DEFAULT_MAX_TOKENS
        turns = () if continued is None else continued.turns
        self._conversation = Conversation(engine, sampling_settings(settings), self._max_tokens, self._system, turns)
        self._chats = chats
        self._keeper = ChatKeeper(
            chats, self._record(), say_notice, chat_id=None if continued is None else continued.chat_id
        )

    def load(self) -> None:
        """Load the models, and say what is loaded.

        Raises:
            ModelLoadError: the draft that was asked for cannot be used, at the beginning. One that is lost later is
                told of, and the chat goes on.
        """
        is_first = self._memory is None
        console = notices_console()
        with progress(console) as report:

            def on_progress(event: LoadProgress) -> None:
                report(f"loading the {event.model}", event.fraction, "")

            memory, loaded = self._interruptions.run(self._load(on_progress))
        if is_first and self._draft is not None and loaded.draft is None:
            way_on = ("With --draft none the chat goes on without.",) if self._is_continued else ()
            raise draft_refusal(self._target_word, loaded.draft_failure, *way_on)
        self._memory = (memory, loaded)
        self._kinds.forget()
        _say(loaded_line(loaded, *self._models))
        for note in context_notes(loaded):
            _say(f"{note.severity}: {note.text} {note.advice}")
        for line in (*memory.notes, *check_use(memory, loaded)):
            _say(one_line(line))
        if is_first and self._drafting.speculation.remembers:
            _say(one_line(remembering_notice()))
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
            self._drafting.speculation,
            on_progress,
            memory.draft_context,
        )
        return memory, replace(loaded, speculation=await self._learnt.recall(self._engine, loaded))

    def talk(self) -> None:
        """Answer line after line."""
        while (line := read_line(self._interruptions)) is not None:
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
        self._keeper.ask(text)
        try:
            with hidden_keys():
                answer = self._interruptions.run(self._ask(text, stream))
        except BaseException:
            self._keeper.give_up()
            raise
        finally:
            stream.close()
        self._keeper.finish(answer)
        _say(status_line(answer, self._models[1], self._kinds.kind))

    async def _ask(self, text: str, stream: AnswerStream) -> Answer:
        def hear(piece: str) -> None:
            stream.show(piece)
            self._keeper.hear(piece)

        if refused := await self._kinds.prepare(self._conversation, text, self._drafting.speculation):
            _say(one_line(f"The profile's way of drafting for {self._kinds.kind} is not possible: {refused}"))
        # A prompt that is short is read before anybody could read the line on it.
        timer = asyncio.get_running_loop().call_later(PREFILL_PATIENCE_S, stream.show_prefill)
        try:
            return await self._conversation.ask(text, hear, stream.note_prefill, self._learnt.observe)
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
            self._keeper.start_over()
            _say("The conversation is forgotten.")
        elif name == "/title":
            self._rename(argument)
        elif name == "/save":
            self._save(argument)
        elif name == "/off":
            self._switch("method", "off")
        elif name == "/on":
            self._switch("method", self._drafting.last_method)
        elif name[1:] in CHOICES:
            self._switch(name[1:], argument)
        elif name == "/forget":
            self._forget()
        else:
            _say(f"There is no command {one_line(name)}. /help shows all.")

    def _show_memory(self) -> None:
        if self._memory is None:
            _say("No models are loaded.")
            return
        memory, loaded = self._memory
        for text in memory_texts(memory, loaded):
            _say(text)
        if memory.plan is None and loaded.footprint is None:
            _say("It is not known; the log file says why.")

    def _switch(self, what: str, value: str) -> None:
        if value not in CHOICES[what]:
            _say(usage(what, self._drafting.now(what)))
            return
        if self._kinds.is_used:
            self._kinds.give_up()
            _say("From here on the profile's settings for kinds of text do not count.")
        wanted, before = self._drafting.changed(what, value), self._drafting.speculation
        state, refused = self._interruptions.run(self._conversation.try_out(wanted.speculation, before))
        line = speculation_line(state, self._models[1])
        if refused:
            lacks_draft = needs_draft((wanted.method,)) and not self._draft
            hint = " A chat that begins with --draft MODEL has one." if lacks_draft else ""
            _say(f"{value} is not possible: {refused.rstrip('.')}.{hint} It stays as it was: {line}.")
            return
        self._drafting = wanted
        self._keeper.use(self._record())
        _say(line)
        if note := remark(what, wanted):
            _say(note)

    def _forget(self) -> None:
        self._learnt.forget()
        self._interruptions.run(self._conversation.configure(self._drafting.speculation, COLD))
        self._kinds.forget()
        _say("What adaptive drafting has learnt with these models is forgotten.")

    def say_kept(self) -> None:
        """Say which chat is kept, if there is one."""
        if (chat_id := self._keeper.chat_id) is not None:
            _say(f"chat {chat_id} kept")

    def _rename(self, title: str) -> None:
        if not title:
            _say("/title TEXT calls the chat something else.")
        elif not self._keeper.is_keeping:
            _say("This chat is not kept.")
        else:
            self._keeper.rename(tidy_title(title))
            _say(one_line(f"The chat is called {tidy_title(title)}."))

    def _save(self, name: str) -> None:
        if not name:
            _say("/save FILE writes the chat to a new file.")
            return
        _say(one_line(f"Written to {write_new(name, chat_markdown(self._chat_so_far()), is_forced=False)}."))

    def _chat_so_far(self) -> StoredChat:
        chat_id = self._keeper.chat_id
        if self._chats is not None and chat_id is not None:
            return self._chats.get(chat_id)
        return unkept_chat(self._record(), self._conversation.messages)

    def _record(self) -> Record:
        drafting = self._drafting
        return models_record(*self._models, drafting.settings, drafting.method, self._system, self._max_tokens)


def _say(text: str) -> None:
    say(notices_console(), text, style="dim")
