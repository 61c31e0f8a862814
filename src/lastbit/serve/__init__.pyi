from lastbit.serve.run import (
    Started as Started,
    last_run as last_run,
    link_for as link_for,
    serve as serve,
)
from lastbit.serve.settings import Settings as Settings
from lastbit.serve.slots import UNSAID as UNSAID
from lastbit.serve.units import UNITS as UNITS
