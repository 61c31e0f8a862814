from lastbit.serve.settings import (
    Settings as Settings,
)
