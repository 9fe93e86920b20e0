"""The screen `chat`: talk with the target, and see what drafting does for it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType

from localspec.errors import LocalspecError
from localspec.metrics.thinking import split_thinking
from localspec.tui.chat_talk import Asking, messages_of
from localspec.tui.chat_words import stoppable, turns_from
from localspec.tui.keyed import keyed
from localspec.tui.screens.chat_desk import ChatDesk
from localspec.tui.state import Workbench
from localspec.tui.widgets.chat_activity import Activity
from localspec.tui.widgets.chat_panel import ChatPanel
from localspec.tui.widgets.chat_prompt import ChatPrompt

_CODE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1[`~]*\s*$", re.MULTILINE | re.DOTALL)


class ChatScreen(ChatDesk):
    """Keys, dialogs and what they do."""

    CSS_PATH = "chat.tcss"
    AUTO_FOCUS = "ChatPrompt"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-normal"), (110, "-wide"), (150, "-broad")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop", id="chat.stop", tooltip="Stop the answer, and keep what came"),
        Binding("ctrl+s", "settings", "Settings", id="chat.settings", tooltip="How to draft and sample"),
        Binding("ctrl+t", "xray", "X-ray", id="chat.xray", tooltip="Where each token came from"),
        Binding("ctrl+l", "panel", "Panel", id="chat.panel", tooltip="Show or hide the live panel"),
        Binding("ctrl+b", "probe", "Baseline", id="chat.probe", tooltip="Measure a short answer off and on"),
        Binding("ctrl+r", "regenerate", "Again", id="chat.again", tooltip="Answer again, with another seed"),
        Binding("ctrl+e", "edit_last", "Edit", id="chat.edit", tooltip="Change the last question"),
        Binding("ctrl+y", "copy", "Copy", id="chat.copy", tooltip="Copy the last answer"),
        Binding("ctrl+n", "new_chat", "New", id="chat.new", tooltip="Begin another chat"),
        Binding("ctrl+o", "chats", "Chats", id="chat.list", tooltip="Find a kept chat, and go on with it"),
        Binding("ctrl+k", "load", "Load", id="chat.load", tooltip="Load the models, anew if they died"),
        Binding("f7", "save", "Save", id="chat.save", tooltip="Write the chat to a Markdown file"),
        Binding("f8", "copy_code", "Copy code", id="chat.copy_code", tooltip="Copy the last code block", show=False),
        Binding("pageup", "page(-1)", "Up", id="chat.up", tooltip="Read further up", show=False),
        Binding("pagedown", "page(1)", "Down", id="chat.down", tooltip="Read further down", show=False),
    ]

    _is_stop_offered = False

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to stop only what goes on."""
        return self._can_stop if action == "stop" else True

    @property
    def _can_stop(self) -> bool:
        return self.is_working or self.prompt.is_sent or self._is_editing

    def _show(self, activity: Activity) -> None:
        super()._show(activity)
        if self._can_stop != self._is_stop_offered:
            self._is_stop_offered = self._can_stop
            self.refresh_bindings()

    @on(ChatPrompt.Sent)
    async def _send(self, event: ChatPrompt.Sent) -> None:
        self.prompt.is_sent = False
        if self._is_refused():
            return
        if self.workbench.target is None:
            self._is_stopping = False
            self._show_idle()
            self._say(keyed("No target model is chosen. Choose one on the Models screen ({mode.models})."))
            return
        before, is_anew = self._turns, self._is_editing and bool(self._turns)
        self._is_editing = False
        self.prompt.remember(event.text)
        self.prompt.put("")
        await self._begin(Asking(event.text, before[:-1] if is_anew else before, is_anew))

    async def action_regenerate(self) -> None:
        """Answer the last question again."""
        if self._is_refused() or not self._turns:
            return
        last = self._turns[-1]
        if self.workbench.sampling.temperature == 0.0:
            self._say(keyed("At temperature 0 the same answer comes again; {chat.settings} changes that."))
        await self._begin(Asking(last.question, self._turns[:-1], is_anew=True, attempt=last.attempt + 1))

    def action_edit_last(self) -> None:
        """Put the last question back into the prompt."""
        if self._is_refused() or not self._turns:
            return
        if not self.prompt.put(self._turns[-1].question):
            return
        self._is_editing = True
        self.prompt.focus()
        self._show_idle()

    def action_stop(self) -> None:
        """Stop what is going on; or give up editing."""
        if self.is_working or self.prompt.is_sent:
            self._stop()
        elif self._is_editing:
            self._is_editing = False
            self.prompt.put("")
            self._show_idle()

    def action_copy(self) -> None:
        """Copy the last answer, without its thinking."""
        if self._turns:
            self.app.copy_to_clipboard(split_thinking(self._turns[-1].text).answer)
            self._say("The answer is copied.")

    def action_copy_code(self) -> None:
        """Copy the last block of code."""
        blocks = [block for turn in self._turns for _, block in _CODE.findall(turn.text)]
        if blocks:
            self.app.copy_to_clipboard(blocks[-1])
        self._say("The block of code is copied." if blocks else "There is no block of code.")

    async def action_new_chat(self) -> None:
        """Begin another chat."""
        if self._is_refused():
            return
        self.archive.start_over()
        await self._take_up(())

    def action_page(self, direction: int) -> None:
        """Scroll the transcript."""
        if direction < 0:
            self.transcript.page_up()
        else:
            self.transcript.scroll_page_down()

    def action_panel(self) -> None:
        """Show or hide the live panel."""
        is_shown = self.query_one(ChatPanel).display
        self.set_class(not is_shown, "panel-on")
        self.set_class(is_shown, "panel-off")

    def action_settings(self) -> None:
        """Open the drawer of settings."""
        from localspec.tui.screens.chat_settings import ChatSettings

        self.app.push_screen(ChatSettings(self.workbench), self._take_settings)

    def _take_settings(self, bench: Workbench | None) -> None:
        if bench is None or bench == self.workbench:
            return
        is_reload = self.engine_state.loaded is not None and bench.context != self.workbench.context
        self.host.workbench = bench
        self._say("The models are loaded anew with the next answer." if is_reload else "From the next answer on.")

    def action_xray(self) -> None:
        """Look at the rounds of the last answer."""
        from localspec.tui.screens.chat_xray import ChatXray

        rounds = self._turns[-1].rounds if self._turns else ()
        if rounds:
            self.app.push_screen(ChatXray(rounds))
        else:
            self._say("There is no answer of this session to look into yet.")

    @work(exclusive=True, group="save", exit_on_error=False)
    async def action_save(self) -> None:
        """Ask for a name, and write the chat."""
        from localspec.session.chat_markdown import chat_markdown
        from localspec.session.chat_record import unkept_chat
        from localspec.session.new_file import write_new
        from localspec.tui.screens.chat_save import ChatSave

        if not self._turns:
            self._say("There is nothing to save yet.")
            return
        try:
            chat = await self.archive.current()
            if chat is None:
                chat = unkept_chat(await self.archive.record_of(self.workbench), messages_of(self._turns))
        except LocalspecError as error:
            self.host.show_failure(error)
            return
        text = chat_markdown(chat)

        def write(name: str) -> Path:
            return write_new(name, text, is_forced=False)

        number = f"-{chat.summary.id}" if chat.summary.id else ""
        path = await self.app.push_screen_wait(ChatSave(f"chat{number}.md", write))
        if path is not None:
            self._say(f"Written to {path}.")

    def action_chats(self) -> None:
        """Open the list of chats."""
        from localspec.tui.screens.chat_list import ChatList

        if not self._is_refused():
            self.app.push_screen(ChatList(self.archive), self._take_chat)

    def _take_chat(self, chat_id: int | None) -> None:
        if chat_id is not None:
            self._open_chat(chat_id)

    @work(exclusive=True, group="open", exit_on_error=False)
    async def _open_chat(self, chat_id: int) -> None:
        from localspec.tui.screens.chat_list import NEW_CHAT

        if chat_id == NEW_CHAT:
            await self.action_new_chat()
            return
        try:
            chat = await self.archive.open(chat_id)
            if self.workbench.target is None:
                target, draft = await self.archive.models_of(chat)
                self.host.workbench = replace(self.host.workbench, target=target, draft=draft)
        except LocalspecError as error:
            self.host.show_failure(error)
            return
        await self._take_up(turns_from(chat))
        bench = self.workbench.target
        if bench is not None and chat.summary.target_name not in ("", bench.name):
            self._say(f"This chat was with {chat.summary.target_name}; it goes on with {bench.name}.")

    def action_load(self) -> None:
        """Load the models now."""
        if not self._is_refused():
            self._start(self._load(self.workbench), stoppable("loading"))

    def action_probe(self) -> None:
        """Measure a baseline."""
        if not self._is_refused():
            self._start(self._probe(self.workbench), stoppable("measuring off and on"))
