from lastbit.verify.running.code import Code as Code

__all__ = ["Code"]
