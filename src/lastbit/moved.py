"""Import paths of 0.1 that documents and certificates name, and where their files are now.

`Moved` is asked last, when Python has found nothing itself; it gives the module under its new name.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import MappingProxyType, ModuleType
from typing import Any, cast

_NOW = MappingProxyType(
    {
        "lastbit.audit.attacks.preimage": "lastbit.audit.attacks.floats",
        "lastbit.audit.declared_noise": "lastbit.audit.replay.primitives",
        "lastbit.audit.distinguish": "lastbit.audit.blackbox.distinguish",
        "lastbit.audit.shelf": "lastbit.audit.targets",
        "lastbit.audit.target": "lastbit.audit.targets.target",
        "lastbit.mechanisms.admissible": "lastbit.mechanisms.admissible_noise",
        "lastbit.tables.cost": "lastbit.tables.plan.cost",
        "lastbit.tables.schema": "lastbit.tables.card.schema",
        "lastbit.verify.arithmetic": "lastbit.checker.numbers",
        "lastbit.verify.check": "lastbit.checker.dispatch",
        "lastbit.verify.check_rounding": "lastbit.checker.rounding",
        "lastbit.verify.law": "lastbit.verify.running.law",
        "lastbit.verify.semantics": "lastbit.verify.error_bounds.semantics",
        "lastbit.verify.traced": "lastbit.verify.tracing.markers",
        "lastbit.verify.uniforms": "lastbit.verify.running.uniforms",
    }
)


class Moved:
    """Finds a module of 0.1 under its old name: the very module, not a copy.

    A finder and a loader by what it can do: their base classes would load half of importlib.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, cast(Any, self)) if fullname in _NOW else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(_NOW[spec.name])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__
        if spec is not None and spec.loader is self:  # importing has put the old name's there
            module.__spec__ = spec.loader_state
