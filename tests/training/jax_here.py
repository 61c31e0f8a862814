"""jax and optax for tests; without them they skip and say how to get them."""

import pytest

jax = pytest.importorskip("jax", reason="jax is not here: make training-tests")
optax = pytest.importorskip("optax", reason="optax is not here: make training-tests")
