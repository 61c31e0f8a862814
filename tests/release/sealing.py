"""What the certificate of an answer has the digest of."""

from __future__ import annotations

from typing import Any


def sealed_rows(record: dict[str, Any], rows: Any) -> dict[str, Any]:
    """Columns, rows and, where there are any, what whole intervals rest on."""
    whole = {"whole": record["whole"]} if "whole" in record else {}
    return {"columns": record["columns"], "rows": rows, **whole}
