"""The chat's way to the store: one thread of its own, so that a slow or locked file never holds up the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from localspec.errors import LocalspecError, UsageError
from localspec.tui.state import ChosenModel, Workbench

if TYPE_CHECKING:
    from localspec.catalog.found_model import FoundModel
    from localspec.engine.events import ModelsLoaded
    from localspec.engine.values import SpeculationSettings
    from localspec.session.baseline import Baseline
    from localspec.session.chat_keeping import ChatKeeper
    from localspec.session.conversation import Answer
    from localspec.settings import Settings
    from localspec.store.chats import Chats
    from localspec.store.database import Database
    from localspec.store.values import ChatSummary, Record, StoredChat
    from localspec.tui.chat_fold import ChatTurn

T = TypeVar("T")

MAX_LISTED = 200
"""Chats in a list; a search finds the others."""

LATER_S = 0.5
"""After a piece of an answer, until it is on record for certain."""


@dataclass(frozen=True, slots=True)
class ListedChat:
    """A chat in the list. Its texts are foreign."""

    summary: ChatSummary
    snippet: str = ""
    """From where the words were found."""


class ChatArchive:
    """Keeps the chat of the screen, and finds earlier ones. What it cannot do is said, and stops no chat.

    Args:
        open_database: opens the store, with the first use.
        settings: in force at the start; what the workbench holds counts before them.
        say: tells the user something; called in the event loop.
    """

    def __init__(self, open_database: Callable[[], Database], settings: Settings, say: Callable[[str], None]) -> None:
        self._open_database = open_database
        self._settings = settings
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(1, "localspec-chats")
        self._database: Database | None = None
        self._keeper: ChatKeeper | None = None
        self._bench: Workbench | None = None
        self._has_failed = False
        self._chat_id: int | None = None
        self._turns: tuple[ChatTurn, ...] = ()
        self._question = ""
        self._later: asyncio.TimerHandle | None = None

    def ask(self, bench: Workbench, question: str, num_back: int = 0, turns: tuple[ChatTurn, ...] = ()) -> None:
        """Keep a question, in place of so many of the last ones.

        Args:
            bench: what it is asked with.
            question: what is asked.
            num_back: how many of the last questions it takes the place of.
            turns: what came before; kept anew where the chat was deleted by another app.
        """

        def work() -> None:
            if self._is_deleted():
                keeper = self._keep_anew(bench, turns, question)
            else:
                keeper = self._keeper_for(bench)
                for _ in range(num_back):
                    keeper.take_back()
            keeper.ask(question)
            self._chat_id = keeper.chat_id or self._chat_id
            self._turns, self._question = turns, question

        self._submit(work)

    def hear(self, piece: str) -> None:
        """Keep a piece of the answer, a moment later at the latest: no other may come for long."""
        self._submit(lambda: None if self._keeper is None else self._keeper.hear(piece))
        if self._later is None:
            self._later = self._loop.call_later(LATER_S, self._catch_up)

    def _catch_up(self) -> None:
        self._later = None
        self._submit(lambda: None if self._keeper is None else self._keeper.catch_up())

    def finish(self, answer: Answer) -> None:
        """Keep the whole answer."""

        def work() -> None:
            keeper, bench = self._keeper, self._bench
            if keeper is None:
                return
            if bench is not None and self._is_deleted():
                keeper = self._keep_anew(bench, self._turns, self._question)
                keeper.ask(self._question)
                keeper.hear(answer.text)
                self._chat_id = keeper.chat_id or self._chat_id
            keeper.finish(answer)

        self._submit(work)

    def give_up(self) -> None:
        """Keep what came of an answer that failed."""
        self._submit(lambda: None if self._keeper is None else self._keeper.give_up())

    def start_over(self) -> None:
        """Begin another chat with the next question. If the last one could not be kept, that is tried anew."""

        def work() -> None:
            self._chat_id = None
            if self._keeper is not None and not self._keeper.is_keeping:
                self._keeper, self._has_failed = None, False
            elif self._keeper is not None:
                self._keeper.start_over()

        self._submit(work)

    async def listed(self, words: str) -> tuple[ListedChat, ...]:
        """Return the chats that hold the words, all of them for none, the newest first.

        Raises:
            LocalspecError: the store cannot be read.
        """

        def work() -> tuple[ListedChat, ...]:
            chats = self._chats()
            if not words.strip():
                return tuple(ListedChat(summary) for summary in chats.summaries(MAX_LISTED))
            return tuple(ListedChat(hit.summary, hit.snippet) for hit in chats.search(words, MAX_LISTED))

        return await self._run(work)

    async def open(self, chat_id: int) -> StoredChat:
        """Return a chat, and go on keeping that one.

        Raises:
            LocalspecError: it is not there, or cannot be read.
        """

        def work() -> StoredChat:
            chats = self._chats()
            chat = chats.get(chat_id)
            self._keeper = self._make_keeper(chats, {}, chat_id)
            self._bench, self._chat_id = None, chat_id
            return chat

        return await self._run(work)

    async def delete(self, chat_id: int) -> bool:
        """Delete a chat, and return whether it was the one that is being kept; another begins with the next question.

        Raises:
            LocalspecError: it is not there, or cannot be deleted.
        """

        def work() -> bool:
            self._chats().delete(chat_id)
            if self._keeper is None or self._keeper.chat_id != chat_id:
                return False
            self._keeper.start_over()
            self._chat_id = None
            return True

        return await self._run(work)

    async def rename(self, chat_id: int, title: str) -> None:
        """Give a chat another title.

        Raises:
            LocalspecError: it is not there, or cannot be written.
        """
        await self._run(lambda: self._chats().rename(chat_id, title))

    async def current(self) -> StoredChat | None:
        """Return the chat that is being kept; None if there is none."""

        def work() -> StoredChat | None:
            chat_id = None if self._keeper is None else self._keeper.chat_id
            return None if chat_id is None else self._chats().get(chat_id)

        return await self._run(work)

    async def models_of(self, chat: StoredChat) -> tuple[ChosenModel, ChosenModel | None]:
        """Return the models that a chat was had with.

        Raises:
            LocalspecError: they are not here any more.
        """

        def work() -> tuple[ChosenModel, ChosenModel | None]:
            from localspec.session.chat_continuation import find_draft, find_target

            target, _ = find_target(chat, self._settings)
            draft, _ = find_draft(chat, self._settings)
            return ChosenModel(target.name, target.path), None if draft is None else ChosenModel(draft.name, draft.path)

        return await self._run(work)

    async def record_of(self, bench: Workbench) -> Record:
        """Return models and settings as they are kept with a chat."""
        return await self._run(lambda: _record(bench, self._settings))

    async def find_baseline(self, loaded: ModelsLoaded, speculation: SpeculationSettings) -> Baseline | None:
        """Return what was measured without drafts for the same models and settings; None if nothing was."""

        def work() -> Baseline | None:
            from localspec.session.baseline import find_baseline
            from localspec.store.runs import Runs

            try:
                return find_baseline(Runs(self._opened()), loaded, speculation)
            except LocalspecError:
                return None

        return await self._run(work)

    async def close(self) -> None:
        """Write what is waiting, and close the store."""

        def work() -> None:
            if self._database is not None:
                self._database.close()
                self._database = None

        if self._later is not None:
            self._later.cancel()
        await self._run(work)
        self._executor.shutdown(wait=False)

    def is_unkept(self) -> bool:
        """Say whether something of the chat is not on record. For the very end: it may have to wait."""
        self._executor.shutdown(wait=True)
        return self._has_failed or (self._keeper is not None and not self._keeper.is_keeping)

    def _submit(self, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except LocalspecError as error:
                self._say_once(f"This chat is not kept: {error.message} {error.hint}")

        self._executor.submit(guarded)

    async def _run(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._executor, work)

    def _opened(self) -> Database:
        if self._database is None:
            self._database = self._open_database()
            for notice in self._database.notices:
                self._tell(notice)
        return self._database

    def _chats(self) -> Chats:
        from localspec.store.chats import Chats

        return Chats(self._opened())

    def _keeper_for(self, bench: Workbench) -> ChatKeeper:
        if self._keeper is None:
            try:
                chats: Chats | None = self._chats()
            except LocalspecError as error:
                self._say_once(f"This chat is not kept: {error.message} {error.hint}")
                chats = None
            self._keeper = self._make_keeper(chats, _record(bench, self._settings), None)
        elif bench != self._bench:
            self._keeper.use(_record(bench, self._settings))
        self._bench = bench
        return self._keeper

    def _is_deleted(self) -> bool:
        from sqlite3 import Error

        if self._chat_id is None or self._database is None:
            return False
        query = "SELECT 1 FROM chats WHERE id = ?"
        try:
            return self._database.connection.execute(query, (self._chat_id,)).fetchone() is None
        except (LocalspecError, Error):
            return False

    def _keep_anew(self, bench: Workbench, turns: tuple[ChatTurn, ...], question: str) -> ChatKeeper:
        """Keep as another chat what was deleted by another app while it went on here."""
        from localspec.session.chat_record import title_of

        chats, record = self._chats(), _record(bench, self._settings)
        chat_id = chats.start(title_of(turns[0].question if turns else question), record)
        for turn in turns:
            chats.add_message(chat_id, "user", turn.question)
            chats.add_message(chat_id, "assistant", turn.text, turn.figures.finish_reason)
        self._keeper = self._make_keeper(chats, record, chat_id)
        self._bench, self._has_failed = bench, False
        self._tell("This chat was deleted elsewhere. It is kept again, as another one.")
        return self._keeper

    def _make_keeper(self, chats: Chats | None, models: Record, chat_id: int | None) -> ChatKeeper:
        from localspec.session.chat_keeping import ChatKeeper

        return ChatKeeper(chats, models, self._tell, chat_id=chat_id)

    def _say_once(self, text: str) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._tell(text)

    def _tell(self, text: str) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._say, text)


def _record(bench: Workbench, settings: Settings) -> Record:
    from localspec.session.chat_record import models_record
    from localspec.settings import ContextGroup, DraftGroup, SamplingGroup

    if bench.target is None:
        raise UsageError("No target model is chosen.", "Choose one on the Models screen.")
    speculation = asdict(bench.speculation)
    own = settings.draft.model_dump(include={"n_ctx", "n_gpu_layers", "type_k", "type_v"})
    in_force = settings.model_copy(
        update={
            "draft": DraftGroup.model_construct(**{**own, **speculation}),
            "sampling": SamplingGroup.model_construct(**asdict(bench.sampling)),
            "context": ContextGroup.model_construct(**asdict(bench.context)),
        }
    )
    draft = None if bench.draft is None else _found(bench.draft)
    return models_record(_found(bench.target), draft, in_force, bench.speculation.method, "", bench.max_tokens)


def _found(model: ChosenModel) -> FoundModel:
    from localspec.catalog.found_model import FoundModel
    from localspec.catalog.naming import existing_file

    found = existing_file(str(model.path))
    # The name that it was chosen by says more than that of its file.
    return replace(found, name=model.name) if found else FoundModel(model.name, model.path, (model.path,), "folder")
