"""The model that the agent is to run: the spec's, or the one somebody switched to since.

``switch-model`` does not write the operator's spec file, which goes on naming the old model. Until
it is changed the journaled switch stands for it: otherwise every guard would call a switch that was
meant a fault, and none would watch the new model's settings. A spec that names yet another model
than at the time of the switch is newer than the switch, and counts.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .model import Switched
from .spec import ModelSpec


def find_pin(spec: ModelSpec, switched: Switched | None, handle: object) -> Switched | None:
    """Return the switch by which the agent runs another model than the spec's, if one explains it.

    Args:
        spec: the spec's model.
        switched: the last switch that went through.
        handle: what the agent runs now.
    """
    if switched is None or handle == spec.handle:
        return None
    fits = switched.handle == handle and switched.spec_handle == spec.handle
    return switched if fits else None


def pin_model(spec: ModelSpec, switched: Switched | None, handle: object) -> ModelSpec:
    """Return what is declared of the model that the agent is to run.

    For a model that was switched to, what the spec declares of its own is declared with the values
    that the switch gave.
    """
    pin = find_pin(spec, switched, handle)
    if pin is None:
        return spec
    kept: dict[str, Any] = {name: pin.config.get(name) for name in spec.settings()}
    kept["enable_reasoner"] = bool(kept["enable_reasoner"])
    return dataclasses.replace(spec, handle=pin.handle, **kept)
