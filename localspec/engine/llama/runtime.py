"""What the worker has loaded, and each request carried out on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Literal

from localspec.catalog.pairing import vocabulary_difference
from localspec.engine.adaptive_pacing import AdaptivePacing, is_adaptive
from localspec.engine.events import Configured, LoadProgress, ModelsLoaded, PrefillProgress
from localspec.engine.llama.abort import AbortFlag
from localspec.engine.llama.calibration import calibrate
from localspec.engine.llama.difference import explain_difference
from localspec.engine.llama.drafters import Drafting, EarlierAnswers, choose_drafter
from localspec.engine.llama.generation import Emit, Generation
from localspec.engine.llama.loading import LoadedModel, load
from localspec.engine.llama.real_footprint import real_footprint
from localspec.engine.llama.steps import measure_steps
from localspec.engine.pacing import check_speculation
from localspec.engine.pacing_state import from_text, to_text
from localspec.engine.requests import Configure, ExplainDifference, Generate, LoadModels, MeasureSteps
from localspec.engine.values import ContextSettings, ModelInfo, SpeculationSettings, SpeculationState
from localspec.errors import LocalspecError, UsageError
from localspec.paths import answers_dir

_STEP = 0.01


class Runtime:
    """Target, draft and drafter of one process. One request at a time; `abort` may be set from any thread."""

    def __init__(
        self,
        emit: Emit,
        abort: AbortFlag,
        n_threads: int,
        clock: Callable[[], float] = perf_counter,
        answers_folder: Callable[[], Path] = answers_dir,
    ) -> None:
        """Start with nothing loaded.

        Args:
            emit: takes each event.
            abort: stops whatever runs.
            n_threads: physical cores.
            clock: seconds.
            answers_folder: where earlier answers are kept, for settings that ask for it.
        """
        self._emit = emit
        self._abort = abort
        self._n_threads = n_threads
        self._clock = clock
        self._target: LoadedModel | None = None
        self._draft: LoadedModel | None = None
        self._drafting = Drafting()
        self._earlier = EarlierAnswers(answers_folder)
        self._pacing: AdaptivePacing | None = None
        self._learnt = ""
        self._state = SpeculationState(False, "off", "", "nothing is loaded", SpeculationSettings())

    def load_models(self, request: LoadModels) -> None:
        """Replace what is loaded. A draft that cannot be used leaves the target loaded, with the reason.

        Raises:
            LocalspecError: the target cannot be loaded; nothing is loaded then.
            Cancelled: an abort was asked for; nothing is loaded then.
        """
        check_speculation(request.speculation)
        started = self._clock()
        self.close()
        self._learnt = request.pacing_state
        self._target = load(
            request.target_path, request.context, self._n_threads, self._abort, self._progress(request.id, "target")
        )
        failure = ""
        if request.draft_path:
            try:
                failure = self._load_draft(request.id, request.draft_path, request.draft_context)
            except LocalspecError as error:
                failure = error.message
            except BaseException:
                self.close()
                raise
        try:
            self._use(request.speculation, failure)
        except BaseException:
            self.close()
            raise
        self._emit(
            ModelsLoaded(
                id=request.id,
                target=self._target.info,
                draft=self._draft_info,
                draft_failure=failure,
                speculation=self._state,
                load_s=self._clock() - started,
                footprint=real_footprint(self._target, self._draft),
            )
        )

    def configure(self, request: Configure) -> None:
        """Change the drafter; another draft model is loaded first if one is named, and none stays if an empty one is.

        The target stays as it is, with its KV cache.

        Raises:
            LocalspecError: nothing is loaded, or the settings cannot work together; the old drafter stays.
            Cancelled: an abort was asked for while a draft was loading; no draft is loaded then.
        """
        check_speculation(request.speculation)
        self._need_target()
        failure = ""
        is_other = self._draft is None or (
            request.draft_path != self._draft.model.header.path or request.draft_context != self._draft.context.settings
        )
        is_changed = request.draft_path is not None and is_other
        if is_changed:
            self._close_draft()
        if is_changed and request.draft_path:
            try:
                failure = self._load_draft(request.id, request.draft_path, request.draft_context)
            except LocalspecError as error:
                failure = error.message
            except BaseException:
                self._use(request.speculation, "loading the draft was stopped")
                raise
        if request.pacing_state:
            self._pacing, self._learnt = None, request.pacing_state
        self._use(request.speculation, failure)
        footprint = real_footprint(self._need_target(), self._draft) if is_changed else None
        self._emit(Configured(request.id, self._draft_info, self._state, failure, footprint))

    def generate(self, request: Generate, received_s: float) -> None:
        """Answer with the events of a generation; see Generation.run for what it raises."""
        Generation(
            self._need_target(),
            self._drafting.drafter,
            self._state,
            self._emit,
            received_s,
            self._clock,
            self._drafting.drawn_draft,
            self._pacing,
        ).run(request)
        self._drafting.end_answer()

    def explain_difference(self, request: ExplainDifference) -> None:
        """Answer with what a replay finds; see difference.py for what it raises."""
        started = last = self._clock()

        def progress(num_done: int, num_total: int) -> None:
            nonlocal last
            now = self._clock()
            if now - last >= 0.1:
                last = now
                self._emit(PrefillProgress(request.id, "target", num_done, num_total, now - started))

        self._emit(explain_difference(self._need_target().context, request, progress))

    def measure_steps(self, request: MeasureSteps) -> None:
        """Answer with what steps cost; see steps.py for what it raises."""
        target = self._need_target()
        self._emit(measure_steps(target, self._draft, request, self._emit, lambda: self._abort.is_set, self._clock))

    def close(self) -> None:
        """Free everything."""
        self._close_draft()
        if self._target is not None:
            self._target.close()
            self._target = None
        self._pacing, self._learnt = None, ""
        self._state = SpeculationState(False, "off", "", "nothing is loaded", SpeculationSettings())

    def _need_target(self) -> LoadedModel:
        if self._target is None:
            raise UsageError("No model is loaded.", "Load a target first.")
        return self._target

    @property
    def _draft_info(self) -> ModelInfo | None:
        return self._draft.info if self._draft is not None else None

    def _load_draft(self, request_id: int, path: str, settings: ContextSettings) -> str:
        """Load a draft and return why it cannot be used, or an empty string."""
        draft = load(path, settings, self._n_threads, self._abort, self._progress(request_id, "draft"))
        ours, theirs = self._need_target().model, draft.model
        has_same_texts = ours.header.vocabulary_fingerprint == theirs.header.vocabulary_fingerprint != ""
        difference = vocabulary_difference(ours.vocabulary, theirs.vocabulary, has_same_texts)
        if difference:
            reason = f"{draft.model.name} is no draft for this target: {difference}"
        elif not draft.can_roll_back:
            reason = f"{draft.model.name} cannot take back tokens (recurrent memory), so it cannot draft"
        else:
            self._draft = draft
            return ""
        draft.close()
        return reason

    def _use(self, settings: SpeculationSettings, draft_failure: str) -> None:
        """Make the drafter that the settings name, or say why there is none."""
        self._drafting.close()
        self._drafting = choose_drafter(settings, self._need_target(), self._draft, draft_failure, self._earlier)
        drafting = self._drafting
        self._state = SpeculationState(
            drafting.drafter is not None, settings.method, drafting.name, drafting.reason, settings
        )
        self._use_pacing(settings)

    def _use_pacing(self, settings: SpeculationSettings) -> None:
        """Choose lengths adaptively from what was learnt before, if the settings ask for it."""
        if self._pacing is not None:
            self._learnt = self._pacing.state
        self._pacing = None
        if self._drafting.drafter is not None and is_adaptive(settings):
            target, draft = self._need_target(), self._draft
            # Until it is measured: a step reads all weights once.
            cost = draft.info.size_bytes / max(target.info.size_bytes, 1) if draft is not None else 0.0
            name = f"draft {Path(draft.model.header.path).stem}" if draft is not None else ""
            known = calibrate(target, draft, name, from_text(self._learnt), self._clock)
            self._pacing = AdaptivePacing(settings, self._clock, to_text(known), cost)

    def _close_draft(self) -> None:
        self._drafting.close()
        self._drafting = Drafting()
        if self._draft is not None:
            self._draft.close()
            self._draft = None

    def _progress(self, request_id: int, model: Literal["target", "draft"]) -> Callable[[float], bool]:
        last = -1.0

        def report(fraction: float) -> bool:
            nonlocal last
            if fraction - last >= _STEP or fraction >= 1.0:
                last = fraction
                self._emit(LoadProgress(request_id, model, fraction))
            return not self._abort.is_set

        return report
