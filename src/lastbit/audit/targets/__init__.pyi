from lastbit.audit.targets.catalogue import LIBRARIES as LIBRARIES, targets as targets

__all__ = ["LIBRARIES", "targets"]
