"""Every error that lastbit raises on purpose.

    LastbitError
    ├── InvalidParameter      (also a ValueError)   a parameter has no meaning here
    │   ├── WrongType         (also a TypeError)    it is not even of a kind that could
    │   ├── UnknownName       (also an AttributeError) a name that is not there
    │   ├── CardRefused                             a data card says too little, or nonsense
    │   └── QueryRefused                            a question that has no private answer here
    ├── EngineFailed          (also RuntimeError)   the database could not run a statement
    ├── BudgetExceeded        (also RuntimeError)   the answer would cost more than is left
    ├── LedgerDamaged         (also RuntimeError)   a ledger is unreadable, or was tampered with
    ├── NotAllowed            (also PermissionError) the card does not let this person ask
    ├── ServerFailed          (also ConnectionError) a server that is not reached, or not trusted
    ├── IncompatibleGuarantees (also a ValueError)  two promises that do not combine as they are
    ├── Undecidable           (also ArithmeticError) two balls overlap: neither < nor >= is proved
    ├── PrecisionExhausted    (also ArithmeticError) more precision was asked for than is allowed
    ├── EntropyUnavailable    (also RuntimeError)   the operating system gave no random bytes
    ├── Untraceable           (also TypeError)      code does more than arithmetic with its input
    ├── Overflow              (also ArithmeticError) a number does not fit into a format
    ├── NoBound               (also ArithmeticError) code may overflow, or divide by 0
    ├── NotMonotone           (also ValueError)     code neither rises nor falls with its uniform
    ├── TooManyOutputs        (also ValueError)     code has more outputs than can be listed
    └── NotCertified          (also ValueError)     no promise can be proved of this code

Each message names the parameter and the way out. No message holds a value of anybody's data: the
parameters named here (scales, weights, sizes) are public by definition, and long ones are cut.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
