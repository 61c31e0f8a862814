from lastbit.audit.targets.libraries import LIBRARIES as LIBRARIES, targets as targets

__all__ = ["LIBRARIES", "targets"]
