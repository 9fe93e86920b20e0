"""The kept profiles: what each would set, and what has become of its files."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import DataTable, Static

from localspec.session.figures import DASH
from localspec.session.plain_text import one_line
from localspec.settings import DraftGroup
from localspec.tui.keyed import keyed
from localspec.tui.plain import plain_line
from localspec.tui.runs.archive import KeptProfile
from localspec.tui.runs.rows import cut
from localspec.tui.widgets.fact_list import Fact, FactList

_NONE = (
    "No profiles yet. A profile keeps the models, the method and the settings of a run under a name: "
    "press {runs.save} on a run."
)


class RunsProfiles(Vertical):
    """A table, and the facts of the highlighted profile below it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "tell('use')", "Use", id="profiles.use", tooltip="Lay it on the workbench"),
        Binding("n", "tell('rename')", "Rename", id="profiles.rename", tooltip="Give it another name"),
        Binding("x", "tell('export')", "Export", id="profiles.export", tooltip="For llama-server and other engines"),
        Binding("d,delete", "tell('delete')", "Delete", id="profiles.delete", tooltip="Forget it; its run stays"),
    ]

    profiles: reactive[tuple[KeptProfile, ...]] = reactive(tuple, init=False)
    """By name."""

    class Asked(Message):
        """Something is wished of the highlighted profile."""

        def __init__(self, what: str, profile: KeptProfile) -> None:
            super().__init__()
            self.what = what
            """`use`, `rename`, `export` or `delete`."""
            self.profile = profile

    def compose(self) -> ComposeResult:
        """Yield table and facts."""
        table: DataTable[Text] = DataTable(cursor_type="row", id="profiles")
        yield table
        with VerticalScroll(id="profile-details", classes="panel"):
            yield FactList()
        yield Static("", classes="empty", id="no-profiles", markup=False)

    def on_mount(self) -> None:
        """Show that there is nothing yet, and how there will be."""
        self._show_profiles()
        self.watch(self.app, "key_map", self._show_keys)

    def _show_keys(self) -> None:
        self.query_one("#no-profiles", Static).update(plain_line(keyed(_NONE)))

    @property
    def table(self) -> DataTable[Text]:
        """The table."""
        return self.query_one("#profiles", DataTable)

    @property
    def highlighted(self) -> KeptProfile | None:
        """The profile under the cursor."""
        place = self.table.cursor_row
        return self.profiles[place] if 0 <= place < len(self.profiles) else None

    def watch_profiles(self) -> None:
        """Show other profiles."""
        if self.is_mounted:
            self._show_profiles()

    def _show_profiles(self) -> None:
        table, place = self.table, self.table.cursor_row
        with self.app.batch_update():
            table.clear(columns=True)
            for name in ("Name", "Target", "Method", "Speedup", "On"):
                table.add_column(Text(name))
            for profile in self.profiles:
                table.add_row(*_cells(profile))
            if self.profiles:
                table.move_cursor(row=min(max(0, place), len(self.profiles) - 1), animate=False)
        self.set_class(not self.profiles, "-empty")
        self._show_facts()

    @on(DataTable.RowHighlighted, "#profiles")
    def _moved(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        self._show_facts()

    @on(DataTable.RowSelected, "#profiles")
    def _chosen(self, event: DataTable.RowSelected) -> None:
        event.stop()
        self.action_tell("use")

    def action_tell(self, what: str) -> None:
        """Pass a wish on."""
        if (profile := self.highlighted) is not None:
            self.post_message(self.Asked(what, profile))

    def _show_facts(self) -> None:
        profile = self.highlighted
        self.query_one(FactList).facts = () if profile is None else profile_facts(profile)


def profile_facts(profile: KeptProfile) -> tuple[Fact, ...]:
    """Return what a profile says, the warnings first."""
    read = profile.read
    if read is None:
        return (("profile", profile.name), ("! damaged", profile.failure))
    document = read.document
    context, sampling, evidence = document.context, document.sampling, document.evidence
    facts = [("! note", note) for note in profile.notes]
    facts += [(role, model.path) for role, model in read.models]
    layers = "all" if context.n_gpu_layers < 0 else str(context.n_gpu_layers)
    facts += [
        ("drafting", _method(profile)),
        *((f"for {one_line(kind)}", _drafting(group)) for kind, group in document.by_workload.items()),
        ("context", f"n_ctx {context.n_ctx}, layers on the GPU {layers}, cache {context.type_k}/{context.type_v}"),
        ("sampling", f"temperature {sampling.temperature:g}, top_k {sampling.top_k}, seed {sampling.seed}"),
    ]
    if evidence is not None:
        facts += [
            ("measured", f"{_speedup(profile)} on {evidence.workload}"),
            ("run", f"{profile.run_id or 'deleted'}, {evidence.measured_at}"),
            ("device", evidence.device or DASH),
            ("build", evidence.build or DASH),
        ]
    return tuple(facts)


def _cells(profile: KeptProfile) -> list[Text]:
    read = profile.read
    warning = "! " if profile.notes or profile.failure else ""
    name = Text(warning + cut(one_line(profile.name), 24))
    if read is None:
        return [name, *(Text(DASH) for _ in range(4))]
    evidence = read.document.evidence
    speedup = _speedup(profile).partition(" (")[0]
    on_what = DASH if evidence is None else cut(one_line(evidence.workload), 12)
    return [name, Text(cut(one_line(read.document.target.name), 22)), *map(Text, (_method(profile), speedup, on_what))]


def _method(profile: KeptProfile) -> str:
    if profile.read is None:
        return DASH
    return _drafting(profile.read.document.speculation)


def _drafting(group: DraftGroup) -> str:
    return "off" if group.method == "off" else f"{group.method} n_max {group.n_max}"


def _speedup(profile: KeptProfile) -> str:
    evidence = None if profile.read is None else profile.read.document.evidence
    figure = None if evidence is None else evidence.speedup
    if figure is None:
        return DASH
    if figure.low is None or figure.high is None:
        return f"{figure.median:.2f}x"
    return f"{figure.median:.2f}x ({figure.low:.2f} to {figure.high:.2f})"
