"""The tree of failures that a user may see."""

from __future__ import annotations

import inspect

import pytest

from localspec import errors


def _classes() -> list[type[errors.LocalspecError]]:
    classes = [value for value in vars(errors).values() if inspect.isclass(value)]
    return [cls for cls in classes if issubclass(cls, errors.LocalspecError)]


@pytest.mark.parametrize("cls", _classes())
def test_every_failure_carries_message_and_hint(cls: type[errors.LocalspecError]) -> None:
    error = cls("It broke.", "Mend it.")
    assert isinstance(error, errors.LocalspecError)
    assert (error.message, error.hint, str(error)) == ("It broke.", "Mend it.", "It broke.")
    assert cls("It broke.").hint == ""


def test_the_drawn_tree_names_every_class_once() -> None:
    drawing = inspect.getdoc(errors) or ""
    assert [drawing.split().count(cls.__name__) for cls in _classes()] == [1] * len(_classes())
