"""The settings of a command, with their units put in force."""

from __future__ import annotations

from localspec.settings import Flags, Settings, load_settings
from localspec.units import Units, use_units


def settings_in_force(flags: Flags | None = None) -> Settings:
    """Return the settings, and show sizes and speeds as they say from now on.

    Args:
        flags: what the command line asks for.

    Raises:
        SettingsError: a value or name is wrong, with where it was written and what to do.
    """
    settings = load_settings(flags)
    use_units(Units(settings.units.memory, settings.units.speed))
    return settings
