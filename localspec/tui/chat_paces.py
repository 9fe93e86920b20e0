"""How often each part of the chat is drawn while an answer comes: lines, Markdown and panel cost very differently."""

from __future__ import annotations

from collections.abc import Callable

from localspec.tui.chat_fold import SNAPSHOT_S
from localspec.tui.pace import REST, Pace

PANEL_S = 0.5
"""Between two drawings of the panel's figures: nobody reads faster."""

SPARING_S = 2.5
"""The same where the engine needs every core."""

SPARING_BLOCKS_S = 4.0
"""There, between two times that Markdown is made of whole blocks: each lays everything out anew."""

BLOCKS_S = 0.25
"""The same where the engine leaves a core."""

BLOCKS_REST = 40.0
"""There, in times of what that took: the lines stand still meanwhile."""

BESIDE_S = 0.025
"""From the panel to the lines that were passed over for it."""


class ChatPaces:
    """The paces of one answer."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin as for an engine that leaves a core.

        Args:
            clock: seconds.
        """
        self._clock = clock
        self.lines = Pace(clock, SNAPSHOT_S)
        """Of snapshots, and so of all that is drawn."""
        self.is_sparing = False
        """Whether the engine needs every core."""
        self._is_panels_turn = False
        self._make_others()

    def _make_others(self) -> None:
        self._panel = Pace(self._clock, SPARING_S if self.is_sparing else PANEL_S)
        least_s = SPARING_BLOCKS_S if self.is_sparing else BLOCKS_S
        self._blocks = Pace(self._clock, least_s, most_s=SPARING_BLOCKS_S)
        if not self.is_sparing:
            self._blocks.begin(BLOCKS_REST)

    def begin(self, rest: float) -> None:
        """Begin an answer.

        Args:
            rest: of `pace.rest_of`.
        """
        self.lines.begin(rest)
        self.is_sparing = rest != REST
        self._make_others()

    def is_panels_turn(self) -> bool:
        """Say whether the panel is drawn with this snapshot; never twice in a row."""
        self._is_panels_turn = not self._is_panels_turn and self._panel.is_due()
        return self._is_panels_turn

    def is_blocks_turn(self) -> bool:
        """Say whether it is time to lay everything out anew."""
        return self._blocks.is_due()

    def draw_panel(self, begun_s: float) -> None:
        """The panel is about to be drawn, and the lines were passed over for it.

        Args:
            begun_s: `lines.work_s()` before anything of it was made.
        """
        self.lines.draw(begun_s)
        if not self.is_sparing:
            self.lines.hurry(BESIDE_S)

    def draw_text(self, begun_s: float, is_laid_out: bool) -> None:
        """Text is about to be drawn.

        Args:
            begun_s: `lines.work_s()` before anything of it was made.
            is_laid_out: whether everything is laid out anew for it.
        """
        # Lines are cheap, and need not wait for what a layout has cost, where it takes nothing from the engine.
        (self._blocks if is_laid_out and not self.is_sparing else self.lines).draw(begun_s)
