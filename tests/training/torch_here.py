"""torch for tests, on one thread; without it they skip and say how to get it."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not here: make training-tests")
torch.set_num_threads(1)
