from .dispatch import (
    beliefs as beliefs,
    certificate_in as certificate_in,
    check as check,
    check_apart_from_code as check_apart_from_code,
    check_query as check_query,
    names_code as names_code,
    problem_of as problem_of,
    remarks_on as remarks_on,
    taken_on_trust as taken_on_trust,
)
from .numbers import Rejected as Rejected
from .price import check_price as check_price
