# SPDX-License-Identifier: Apache-2.0
"""What filter and weigher share of a scheduling pass.

Both see the same RequestSpec, and nobody else does at that time: what is kept
on it is of this request, in whatever thread, and goes with it.
"""

from __future__ import annotations

from typing import Any, Mapping

_WEIGHTS = '_almanac_weights'
_FAILED = '_almanac_failed'


def keep(spec: Any, weights: Mapping[str, float]) -> None:
    """Keep the weights that were given for the request."""
    setattr(spec, _WEIGHTS, weights)
    setattr(spec, _FAILED, False)


def fail(spec: Any) -> None:
    """Keep that no good answer was given for the request."""
    setattr(spec, _WEIGHTS, {})
    setattr(spec, _FAILED, True)


def weights(spec: Any) -> Mapping[str, float]:
    """Give the weights by host; none where Almanac was not asked, or gave none."""
    return getattr(spec, _WEIGHTS, {})


def has_failed(spec: Any) -> bool:
    """Say whether no good answer was given for the instance before."""
    return getattr(spec, _FAILED, False)
