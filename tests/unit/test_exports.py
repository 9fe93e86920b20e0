"""Exports: what they say, and that no name breaks out of a quotation or a comment."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from localspec.cli.profile_commands import DESTINATIONS as OFFERED
from localspec.cli.profile_commands import SHELLS as OFFERED_SHELLS
from localspec.errors import UsageError
from localspec.session.exporting.exports import DESTINATIONS, Destination, export
from localspec.session.exporting.kinds import for_kind
from localspec.session.exporting.koboldcpp import koboldcpp_command
from localspec.session.exporting.llama_cpp import llama_cpp_command
from localspec.session.exporting.sglang import sglang_command
from localspec.session.exporting.shells import SHELLS, Shell, comment, quote
from localspec.session.exporting.vllm import speculative_config, vllm_command
from tests.profile_kit import CONTEXT, DRAFT_CONTEXT, SAMPLING, drafting, model, named_profile

COMMANDS: tuple[Destination, ...] = ("llama-server", "llama-cli", "koboldcpp", "vllm", "sglang")

VISIBLE = st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp")), min_size=1, max_size=40)

HOSTILE = '/m/it\'s $(id) `id` "x" \\ # & | ; \u2019; rm -rf ~.gguf'


def parse_powershell(line: str) -> list[str]:
    """Return the arguments that PowerShell reads on a line, by the rules of its tokenizer for plain and single-quoted
    words: any of the typographic single quotation marks is one, and two together inside are one mark."""
    marks = "'\u2018\u2019\u201a\u201b"
    words: list[str] = []
    word: str | None = None
    index = 0
    while index < len(line):
        one = line[index]
        if one in marks:
            word = word or ""
            index += 1
            while index < len(line):
                if line[index] in marks:
                    if index + 1 < len(line) and line[index + 1] in marks:
                        index += 1
                    else:
                        break
                word += line[index]
                index += 1
            assert index < len(line), "the quotation does not end"
        elif one == " ":
            words += [word] if word is not None else []
            word = None
        else:
            assert one not in '$`"(){};&|<>@#,', f"{one} is special in PowerShell"
            word = (word or "") + one
        index += 1
    return words + ([word] if word is not None else [])


def joined(text: str, mark: str) -> str:
    """Return the command of an export on one line, without comments."""
    lines = [line for line in text.split("\n") if not line.startswith("# ")]
    return "\n".join(lines).replace(f" {mark}\n  ", " ").strip("\n")


def test_what_help_offers_is_what_there_is() -> None:
    assert OFFERED == DESTINATIONS
    assert OFFERED_SHELLS == SHELLS


@settings(max_examples=25, deadline=None)
@given(VISIBLE)
@example("a b")
@example("'")
@example('$(id)`id`"\\!*?~')
def test_sh_reads_back_what_was_quoted(name: str) -> None:
    path = f"/models/{name}"
    text = export(named_profile(target=model(path)), "llama-server", "sh")
    script = joined(text, "\\").replace("llama-server", "printf '%s\\n'", 1)
    out = subprocess.run(["sh", "-c", script], capture_output=True, check=True, timeout=20).stdout.decode()
    assert out.split("\n")[:2] == ["--model", path]


@given(VISIBLE)
@example("it's")
@example("\u2018a\u2019\u201b\u201a'")
@example("$x `n")
def test_powershell_reads_back_what_was_quoted(word: str) -> None:
    assert parse_powershell(f"{quote(word, 'powershell')} b") == [word, "b"]


def test_powershell_quotes_only_what_needs_it() -> None:
    assert quote("--ctx-size", "powershell") == "--ctx-size"
    assert quote(r"C:\models\a.gguf", "powershell") == r"C:\models\a.gguf"
    assert quote("it's", "powershell") == "'it''s'"
    assert quote("a,b", "powershell") == "'a,b'"
    assert quote("", "powershell") == "''"


@pytest.mark.parametrize("to", COMMANDS)
@pytest.mark.parametrize("shell", SHELLS)
def test_hostile_paths_stay_one_argument(to: Destination, shell: Shell) -> None:
    profile = named_profile(target=model(HOSTILE), draft=model(HOSTILE + "2"))
    command = joined(export(profile, to, shell), "\\" if shell == "sh" else "`")
    words = shlex.split(command) if shell == "sh" else parse_powershell(command)
    assert HOSTILE in words
    assert words.count(HOSTILE + "2") == (0 if to == "vllm" else 1)
    if to == "vllm":
        assert json.loads(words[words.index("--speculative-config") + 1])["model"] == HOSTILE + "2"


@given(st.text(max_size=60))
@example("a\nrm -rf ~")
@example("a\r\u2028b\x1b[31m\u202ec\x00")
def test_a_comment_is_one_line_of_what_shows(text: str) -> None:
    line = comment(text)
    assert line.startswith("# ") and len(line.splitlines()) == 1
    assert line.isprintable() or not any(ord(one) < 32 for one in line)


@pytest.mark.parametrize("to", DESTINATIONS)
def test_names_do_not_break_out_of_comments(to: Destination) -> None:
    evil = "x\nrm -rf ~\nFROM evil\n"
    profile = named_profile(
        evidence={"arm": evil, "workload": evil, "speedup": {"median": 1.5}, "device": evil, "build": evil},
        draft=model("/m/draft.gguf", name=evil, repo=evil),
        target=model("/m/target.gguf", name=evil),
    )
    lines = export(profile, to).split("\n")
    assert not any(line.strip().startswith(("rm", "FROM evil")) for line in lines)


@pytest.mark.parametrize("path", ["/m/a\nb.gguf", "/m/\x1b[31m.gguf", "/m/\u202ea.gguf", "/m/\udc80.gguf"])
def test_paths_that_do_not_show_are_refused(path: str) -> None:
    for to in (*COMMANDS, "ollama"):
        with pytest.raises(UsageError, match="do not show"):
            export(named_profile(target=model(path)), to)


def options_of(words: tuple[str, ...]) -> dict[str, str]:
    """Return options with their values; a flag has none."""
    found = {}
    for index, word in enumerate(words):
        if word.startswith("--"):
            value = words[index + 1] if index + 1 < len(words) else ""
            found[word] = "" if value.startswith("--") else value
    return found


def test_llama_server_drafts_with_a_model() -> None:
    context = {**CONTEXT, "n_gpu_layers": -1, "flash_attn": False, "use_mmap": False, "experts_on_cpu": True}
    own = {"n_ctx": 2048, "n_gpu_layers": 0, "type_k": "q8_0", "type_v": "f16"}
    profile = named_profile(context=context, draft_context=own, speculation=drafting(n_min=2, p_min=0.5))
    command = llama_cpp_command(profile, "llama-server")
    found = options_of(command.words)
    # A draft model alone would be loaded and never asked.
    assert found["--spec-type"] == "draft-simple"
    assert found["--spec-draft-model"] == "/models/draft.gguf"
    assert (found["--spec-draft-n-max"], found["--spec-draft-n-min"], found["--spec-draft-p-min"]) == ("5", "2", "0.5")
    assert (found["--n-gpu-layers"], found["--spec-draft-ngl"]) == ("all", "0")
    assert (found["--flash-attn"], found["--load-mode"], found["--cpu-moe"]) == ("off", "none", "")
    assert (found["--spec-draft-type-k"], found["--ctx-size"]) == ("q8_0", "4096")
    text = command.text(profile, "sh")
    assert "# The draft's own n_ctx 2048 has no equivalent" in text
    assert "1.50x (1.40 to 1.60) on edit" in text


@pytest.mark.parametrize(("n_max", "ngram_min", "size"), [(5, 4, "4"), (2, 4, "2"), (8, 3, "3")])
def test_ngram_simple_may_draft_something(n_max: int, ngram_min: int, size: str) -> None:
    profile = named_profile(speculation=drafting("ngram", n_max=n_max, ngram_min=ngram_min), draft=None)
    found = options_of(llama_cpp_command(profile, "llama-cli").words)
    assert found["--spec-type"] == "ngram-simple"
    assert (found["--spec-ngram-simple-size-n"], found["--spec-ngram-simple-size-m"]) == (size, str(n_max))
    assert int(found["--spec-ngram-simple-size-m"]) >= int(found["--spec-ngram-simple-size-n"])
    assert "--spec-draft-model" not in found and "--parallel" not in found


def test_a_profile_that_drafts_nothing_has_no_drafting_options() -> None:
    profile = named_profile(speculation=drafting("off"), draft=None)
    for to in COMMANDS:
        text = export(profile, to)
        assert not re.search(r"^\s+--(spec|draft)", text, re.MULTILINE)


def test_llama_cpp_takes_no_repeat_last_n_below_0() -> None:
    profile = named_profile(sampling={**SAMPLING, "repeat_last_n": -1, "grammar": 'root ::= "a"\n'})
    command = llama_cpp_command(profile, "llama-server")
    assert options_of(command.words)["--repeat-last-n"] == "4096"
    assert any("grammar" in remark for remark in command.remarks)


def test_koboldcpp() -> None:
    context = {**CONTEXT, "type_k": "q8_0", "type_v": "q8_0", "n_gpu_layers": 12, "n_batch": 300, "n_ubatch": 300}
    own = {**DRAFT_CONTEXT, "n_gpu_layers": -1}
    command = koboldcpp_command(named_profile(context=context, draft_context=own, speculation=drafting(p_min=0.5)))
    found = options_of(command.words)
    assert (found["--draftmodel"], found["--draftamount"], found["--draftgpulayers"]) == (
        "/models/draft.gguf",
        "5",
        "999",
    )
    assert (found["--gpulayers"], found["--quantkv"], found["--contextsize"]) == ("12", "1", "4096")
    assert "--batchsize" not in found
    assert any("p_min 0.5" in remark for remark in command.remarks)
    assert any("n_batch 300" in remark for remark in command.remarks)
    on_cpu = koboldcpp_command(named_profile(speculation=drafting("ngram"), context={**CONTEXT, "type_v": "q8_0"}))
    assert "--usecpu" in on_cpu.words and "--quantkv" not in on_cpu.words and "--draftamount" not in on_cpu.words
    assert any("nothing is drafted" in remark for remark in on_cpu.remarks)


def test_vllm() -> None:
    profile = named_profile(draft_context={**DRAFT_CONTEXT, "n_ctx": 2048})
    command = vllm_command(profile, "sh")
    assert command.words[0] == "/models/target.gguf"
    config = json.loads(command.words[command.words.index("--speculative-config") + 1])
    assert config == {
        "method": "draft_model",
        "model": "/models/draft.gguf",
        "num_speculative_tokens": 5,
        "max_model_len": 2048,
    }
    ngram, remarks = speculative_config(named_profile(speculation=drafting("ngram", n_min=2)))
    assert ngram == {
        "method": "ngram",
        "num_speculative_tokens": 5,
        "prompt_lookup_min": 4,
        "prompt_lookup_max": 6,
    }
    assert any("n_min 2" in remark for remark in remarks) and any("suffix" in remark for remark in remarks)
    assert any("GGUF" in remark for remark in command.remarks)
    assert any("7.3" in remark for remark in vllm_command(profile, "powershell").remarks)


def test_sglang() -> None:
    found = options_of(sglang_command(named_profile()).words)
    assert found["--speculative-algorithm"] == "STANDALONE"
    assert found["--speculative-draft-model-path"] == "/models/draft.gguf"
    # With one branch SGLang itself sets the tokens to verify to the steps and one more.
    assert [found[f"--speculative-{name}"] for name in ("num-steps", "eagle-topk", "num-draft-tokens")] == [
        "5",
        "1",
        "6",
    ]
    ngram = options_of(sglang_command(named_profile(speculation=drafting("ngram"))).words)
    assert ngram["--speculative-algorithm"] == "NGRAM" and "--speculative-num-steps" not in ngram


def yaml_fields(text: str) -> dict[str, Any]:
    """Return the fields of a model.yaml, whose values are written as JSON."""
    pairs = re.findall(r"^      - key: (\S+)\n        value: (.+)$", text, re.MULTILINE)
    return {key: json.loads(value) for key, value in pairs}


def test_lm_studio() -> None:
    profile = named_profile(
        target=model("/m/t.gguf", repo="Owner/Target-GGUF"),
        draft=model("/m/d.gguf", repo="Owner/Draft-GGUF"),
        speculation=drafting(p_min=0.4, n_min=1),
        context={**CONTEXT, "type_k": "q8_0"},
    )
    text = export(profile, "lmstudio")
    fields = yaml_fields(text)
    prefix = "llm.prediction.speculativeDecoding."
    assert fields[prefix + "draftModel"] == "owner/draft-gguf"
    assert fields[prefix + "maxTokensToDraft"] == 5
    assert fields[prefix + "minDraftLengthToConsider"] == 1
    assert fields[prefix + "minContinueDraftingProbability"] == 0.4
    assert fields["llm.load.contextLength"] == 4096
    assert fields["llm.load.llama.kCacheQuantizationType"] == {"checked": True, "value": "q8_0"}
    assert 'user: "Owner"' in text and 'repo: "Target-GGUF"' in text
    unknown = export(named_profile(speculation=drafting("ngram")), "lmstudio")
    assert "replace OWNER/NAME" in unknown and "speculativeDecoding" not in unknown


def test_ollama_says_that_the_draft_stays_behind() -> None:
    text = export(named_profile(target=model("/m/a b'c.gguf ")), "ollama")
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    assert lines[0] == 'FROM "/m/a b\'c.gguf "'
    assert all(re.fullmatch(r"PARAMETER [a-z_]+ \S+", line) for line in lines[1:])
    assert "PARAMETER num_ctx 4096" in lines and "DRAFT" not in "".join(lines)
    assert "MTP and DFlash files" in text
    assert "n-grams has no setting" in export(named_profile(speculation=drafting("ngram")), "ollama")
    auto = export(named_profile(speculation=drafting("auto")), "ollama")
    assert "So drafts of up to 16 tokens and the gain" in auto and "n_max" not in auto


@pytest.mark.parametrize("method", ["suffix", "cascade", "auto"])
@pytest.mark.parametrize("to", [to for to in DESTINATIONS if to not in ("json", "vllm")])
def test_what_an_engine_cannot_do_is_a_remark_and_never_an_option(to: Destination, method: str) -> None:
    text = export(named_profile(speculation=drafting(method)), to)
    said = " ".join(line for line in text.split("\n") if line.startswith("# "))
    rest = "\n".join(line for line in text.split("\n") if not line.startswith("# "))
    assert "nothing is drafted" in said.lower() and "no equivalent" in said
    assert not re.search(r"spec|draft", rest.replace("localspec", ""))
    assert "was asked for" not in said


def test_vllm_has_suffix_decoding() -> None:
    config, remarks = speculative_config(named_profile(speculation=drafting("suffix", suffix_factor=1.5)))
    assert config == {
        "method": "suffix",
        "num_speculative_tokens": 5,
        "suffix_decoding_max_spec_factor": 1.5,
        "suffix_decoding_min_token_prob": 0.3,
        "suffix_decoding_max_cached_requests": 0,
    }
    assert any("arctic-inference" in remark for remark in remarks)
    for method in ("cascade", "auto"):
        none, remarks = speculative_config(named_profile(speculation=drafting(method)))
        assert none is None and "no equivalent" in " ".join(remarks)


@pytest.mark.parametrize("to", ["llama-server", "koboldcpp", "lmstudio", "vllm", "sglang"])
def test_adaptive_lengths_and_other_verifications_are_told_of(to: Destination) -> None:
    text = export(named_profile(speculation=drafting(pacing="adaptive", verification="block")), to)
    said = " ".join(line.removeprefix("# ") for line in text.split("\n") if line.startswith("# "))
    assert "here it is always 5" in said and "`block`" in said


def test_json_holds_everything() -> None:
    record = json.loads(export(named_profile(), "json"))
    assert record["name"] == "quick" and record["speculation"] == drafting()
    assert record["context"] == CONTEXT and record["draft_context"] == DRAFT_CONTEXT
    assert record["draft"]["sha256"] == "ab" * 32
    assert record["evidence"]["speedup"]["median"] == 1.5


def test_the_drafts_own_threads_come_along_where_they_can() -> None:
    own = {**DRAFT_CONTEXT, "n_threads": 2, "n_threads_batch": 3}
    profile = named_profile(draft_context=own)
    found = options_of(llama_cpp_command(profile, "llama-server").words)
    assert (found["--threads"], found["--spec-draft-threads"], found["--spec-draft-threads-batch"]) == ("4", "2", "3")
    for to in ("koboldcpp", "lmstudio"):
        assert "The draft's own n_threads 2 has no equivalent here." in export(profile, to)
    same = named_profile()
    assert "--spec-draft-threads" not in llama_cpp_command(same, "llama-server").words
    assert "n_threads" not in export(same, "koboldcpp")


KINDS = {"code": drafting("draft", n_max=8, p_min=0.5), "chat": drafting("off"), "my [edit]\n": drafting("ngram")}


def ini_sections(text: str) -> dict[str, dict[str, str]]:
    """Return the sections of an .ini file, by the grammar of llama.cpp's common/preset.cpp."""
    sections: dict[str, dict[str, str]] = {}
    current = ""
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        if header := re.fullmatch(r"\[([^\]]+)\]", line):
            current = header[1]
            sections[current] = {}
        else:
            key, value = re.fullmatch(r"([a-zA-Z_][a-zA-Z0-9_.-]*) = ([^;#]*)", line).groups()  # type: ignore[union-attr]
            sections.setdefault(current, {})[key] = value
    return sections


def test_presets_of_llama_server_hold_a_section_for_each_kind() -> None:
    context = {**CONTEXT, "experts_on_cpu": True}
    profile = named_profile("My quick one", by_workload=KINDS, context=context)
    text = export(profile, "llama-presets")
    sections = ini_sections(text)
    assert sections.pop("") == {"version": "1"}
    name = "my-quick-one"
    assert list(sections) == [name, f"{name}-for-code", f"{name}-for-chat", f"{name}-for-my-edit"]
    assert {section["model"] for section in sections.values()} == {"/models/target.gguf"}
    assert all(section["cpu-moe"] == "true" and section["parallel"] == "1" for section in sections.values())
    lengths = [section.get("spec-draft-n-max") for section in sections.values()]
    assert lengths == ["5", "8", None, None]
    assert [section.get("spec-type") for section in sections.values()] == [
        "draft-simple",
        "draft-simple",
        None,
        "ngram-simple",
    ]
    # The command line has the very same options, so that the parser's tests stand for these, too.
    words = llama_cpp_command(named_profile(speculation=KINDS["code"], context=context), "llama-server").words
    assert {f"--{key}" for key in sections[f"{name}-for-code"]} == set(options_of(words))
    # The figure was measured over all texts.
    assert text.count("1.50x") == 1 and "this cannot hold" not in text


def test_llama_swap_holds_a_model_for_each_kind() -> None:
    profile = named_profile(by_workload=KINDS, target=model(HOSTILE))
    text = export(profile, "llama-swap", "sh")
    blocks = re.split(r'^  "([a-z0-9-]+)":\n    cmd: \|\n', text, flags=re.MULTILINE)[1:]
    commands = dict(zip(blocks[::2], blocks[1::2], strict=True))
    assert list(commands) == ["quick", "quick-for-code", "quick-for-chat", "quick-for-my-edit"]
    for command in commands.values():
        lines = [line for line in command.split("\n") if line.strip() and not line.startswith("#")]
        assert all(line.startswith("      ") for line in lines)
        words = shlex.split(" ".join(lines))
        assert words[:3] == ["llama-server", "--port", "${PORT}"] and HOSTILE in words
    windows = export(named_profile(target=model(r"C:\my models\it's.gguf")), "llama-swap", "powershell")
    assert '--model "C:\\my models\\it\'s.gguf"' in windows


@pytest.mark.parametrize(
    ("to", "path"),
    [("llama-presets", "/m/a;b.gguf"), ("llama-presets", "/m/a#b.gguf"), ("llama-swap", "/m/${PORT}.gguf")],
)
def test_what_a_file_of_presets_would_change_is_refused(to: Destination, path: str) -> None:
    with pytest.raises(UsageError):
        export(named_profile(target=model(path)), to)
    assert path in export(named_profile(target=model(path)), "llama-swap" if to == "llama-presets" else "llama-presets")


def test_lm_studio_gets_a_file_for_each_kind() -> None:
    files = export(named_profile(by_workload=KINDS), "lmstudio").split("---\n")
    names = [re.search(r'^model: "(.*)"$', file, re.MULTILINE)[1] for file in files]  # type: ignore[index]
    assert names == [f"localspec/quick{end}" for end in ("", "-for-code", "-for-chat", "-for-my-edit")]
    key = "llm.prediction.speculativeDecoding.maxTokensToDraft"
    assert [yaml_fields(file).get(key) for file in files] == [5, 8, None, None]
    assert "4 files" in files[0] and "---" not in export(named_profile(), "lmstudio")


@pytest.mark.parametrize("to", ["llama-server", "llama-cli", "koboldcpp", "vllm", "sglang", "ollama"])
def test_who_holds_one_setting_says_what_stays_behind(to: Destination) -> None:
    profile = named_profile(by_workload={name: KINDS[name] for name in ("code", "chat")})
    (said,) = (line for line in export(profile, to).split("\n") if "of its own for" in line)
    assert said.startswith("# The profile has settings of its own for code and chat") and "--workload" in said
    assert "of its own" not in export(for_kind(profile, "CODE"), to)


def test_one_kind_alone() -> None:
    profile = named_profile(by_workload=KINDS)
    code = for_kind(profile, "code")
    assert code.name == "quick, for code" and code.document.evidence is None
    assert code.document.speculation.n_max == 8
    assert options_of(llama_cpp_command(code, "llama-server").words)["--spec-draft-n-max"] == "8"
    with pytest.raises(UsageError, match="no setting of its own for 'story'") as caught:
        for_kind(profile, "story")
    assert "code, chat and" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        for_kind(named_profile(), "code")
    assert "one setting for all texts" in caught.value.hint


def test_marks_come_along_as_a_comment() -> None:
    evidence = {"arm": "draft", "workload": "edit", "speedup": {"median": 1.5}, "marks": ["on battery"]}
    for to in ("llama-server", "ollama", "llama-presets"):
        assert "# Measured on battery: it may be otherwise on mains." in export(named_profile(evidence=evidence), to)
