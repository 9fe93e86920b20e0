"""A kit: a target and its draft in one folder with their hashes, to carry to a machine without a network.

    FOLDER/kit.json        what there is: names, sizes, SHA-256, where it is from
    FOLDER/*.gguf          the files under their published names

kit.json is written last, so that a folder with one is a whole kit. On the way in, nothing is believed: names are
checked, and no file gets its name before all of them have turned out to be what kit.json says.
"""

from __future__ import annotations

from localspec.catalog.kit_export import KitPart, export_kit
from localspec.catalog.kit_import import import_kit
from localspec.catalog.kit_manifest import KitFile, KitManifest, KitRole, read_manifest

__all__ = ["KitFile", "KitManifest", "KitPart", "KitRole", "export_kit", "import_kit", "read_manifest"]
