"""The units that people read: sizes in powers of 1024 or 1000, speeds as tokens per second or time per token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.catalog.hub.disk import size_text as disk_text
from localspec.cli.settings_in_force import settings_in_force
from localspec.errors import SettingsError
from localspec.planning.wording import share_words, size_text
from localspec.session.answer_line import AnswerFigures, answer_line
from localspec.session.figures import DASH, bytes_text, rate_span, rate_text, speed_text, speed_value
from localspec.session.reporting.figures import size
from localspec.settings import load_settings
from localspec.units import Units, units_in_use, use_units


@pytest.fixture(autouse=True)
def usual_units() -> Iterator[None]:
    yield
    use_units(Units())


def test_sizes_in_powers_of_1000() -> None:
    sizes = (0, 900, 9_300, 87_000_000, 1_500_000_000)
    assert [bytes_text(one) for one in sizes] == ["0 MiB", "900 bytes", "9.1 KiB", "83 MiB", "1.4 GiB"]
    use_units(Units(memory="GB"))
    assert [bytes_text(one) for one in sizes] == ["0 MB", "900 bytes", "9.3 kB", "87 MB", "1.5 GB"]
    assert [size(one) for one in (5_000_000, 87_000_000, 1_500_000_000)] == ["5.0 MB", "87 MB", "1.50 GB"]


def test_plans_and_refusals_speak_in_the_same_units() -> None:
    use_units(Units(memory="GB"))
    assert share_words(1_500_000_000, 12_000_000_000) == "1.5 of 12.0 GB"
    assert share_words(1_000_001, 12_000_000_000) == "2 MB of 12.0 GB"
    assert (size_text(150_000_001), size_text(99_000_001)) == ("0.2 GB", "100 MB")
    assert [disk_text(one) for one in (12, 9_300, 1_500_000_000)] == ["12 bytes", "9.3 kB", "1.5 GB"]


def test_speeds_as_time_per_token() -> None:
    rates = (None, 0.0, 4.0, 41.3, 300.0)
    assert [speed_text(rate) for rate in rates][2:] == ["4.0 tokens/s", "41.3 tokens/s", "300 tokens/s"]
    use_units(Units(speed="ms/token"))
    assert [rate_text(rate) for rate in rates] == [DASH, DASH, "250", "24.2", "3.33"]
    assert speed_text(41.3) == "24.2 ms/token"
    assert answer_line(AnswerFigures(num_tokens=212, decode_tps=41.3)) == "212 tokens, 24.2 ms/token"


def test_an_interval_begins_with_its_smaller_number() -> None:
    assert rate_span(40.0, 20.0, 50.0) == "40.0 (20.0 to 50.0)"
    use_units(Units(speed="ms/token"))
    assert rate_span(40.0, 20.0, 50.0) == "25.0 (20.0 to 50.0)"
    assert rate_span(40.0, None, None) == "25.0"


@given(rate=st.floats(1e-6, 1e9))
def test_a_time_per_token_is_the_rate_turned_over(rate: float) -> None:
    assert speed_value(rate) == rate
    use_units(Units(speed="ms/token"))
    value = speed_value(rate)
    use_units(Units())
    assert value is not None
    assert value * rate == pytest.approx(1000.0)


def test_a_command_takes_them_from_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALSPEC_CONFIG", str(tmp_path))
    (tmp_path / "settings.toml").write_text('[units]\nmemory = "GB"\n', "utf-8")
    monkeypatch.setenv("LOCALSPEC_UNITS__SPEED", "ms/token")
    settings_in_force()
    assert units_in_use() == Units("GB", "ms/token")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[units]\nspeed = "furlongs"\n', "'tokens/s' or 'ms/token'"),
        ('[units]\nmemory = "GIB"\n', "'GiB' or 'GB'"),
        ("[keys]\na = 5\n", "keys.a"),
        ("keys = 5\n", "keys by the name of what they do"),
        ("[keys]\nchat.stop = [1]\n", "keys.chat.stop"),
        ("[app]\ntheme = ''\n", "app.theme"),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings(file=file)
    assert words in caught.value.message


def test_keys_may_be_written_with_or_without_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[keys]\nchat.stop = "f10"\n"chat.copy" = "x"\nfit.context.more = "n"\n', "utf-8")
    assert load_settings(file=file).keys == {"chat.stop": "f10", "chat.copy": "x", "fit.context.more": "n"}
    monkeypatch.setenv("LOCALSPEC_KEYS", '{"chat.stop": "f11"}')
    assert load_settings(file=file).keys["chat.stop"] == "f11"
