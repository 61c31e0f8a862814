"""Check certificate files: `python -m checker certificate.json ...` in the folder of a copy.

Each file is a certificate or a saved answer. Code that a certificate names is imported and called.
The exit status is 0 if all are accepted, 1 if one is refused, 2 if a file cannot be read, and 3 if
all is well but one takes a number on trust: it is checked, and not accepted.
"""

import sys

from .dispatch import problem_of, remarks_on, taken_on_trust
from .numbers import Rejected
from .reading import read_file


def main(paths: list[str]) -> int:
    """Say of each file whether it is accepted, and why not."""
    status, trusting = 0 if paths else 2, False
    for path in paths:
        try:
            found = read_file(path)
        except (OSError, ValueError, Rejected) as error:
            why = f": {error}" if isinstance(error, Rejected) else ""
            sys.stdout.write(f"{path}: not a readable JSON file{why}\n")
            status = 2
            continue
        problem = problem_of(found) if isinstance(found, dict) else "it is not a JSON object"
        verdict = "accepted" if problem is None else f"REFUSED: {problem}"
        if problem is None and taken_on_trust(found):
            verdict, trusting = "checked, apart from what it takes on trust", True
        sys.stdout.write(f"{path}: {verdict}\n")
        for remark in () if problem is not None else remarks_on(found):
            sys.stdout.write(f"{path}: remark: {remark}\n")
        status = max(status, 0 if problem is None else 1)
    return status or (3 if trusting else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
