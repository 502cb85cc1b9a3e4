# SPDX-License-Identifier: Apache-2.0
"""The weigher, which has its weights from what the filter was told."""

from __future__ import annotations

from typing import Any, Iterable

import nova.conf
from nova.scheduler import utils
from nova.scheduler import weights

from almanac_nova import options
from almanac_nova import passes

CONF = nova.conf.CONF


class AlmanacWeigher(weights.BaseHostWeigher):
    """Prefers the hosts that Almanac prefers.

    It has no preference where the filter has not run or has had no good answer:
    when hosts are forced, on a rebuild, and while Almanac is away.
    """

    # With these Nova takes weights as they are (nova/weights.py normalize): they
    # are to have the same scale whichever hosts are left.
    minval = 0.0
    maxval = 1.0

    def __init__(self) -> None:
        options.register(CONF)

    def weight_multiplier(self, host_state: Any) -> float:
        """Give the multiplier, which an aggregate may override."""
        multiplier: float = utils.get_weight_multiplier(
            host_state, 'almanac_weight_multiplier', CONF.almanac.almanac_weight_multiplier)
        return multiplier

    def weigh_objects(self, weighed_obj_list: Iterable[Any], weight_properties: Any) -> list[float]:
        """Give the weights of the hosts, in their order."""
        known = passes.weights(weight_properties)
        return [known.get(weighed.obj.host, 0.0) for weighed in weighed_obj_list]

    def _weigh_object(self, obj: Any, weight_properties: Any) -> float:
        return passes.weights(weight_properties).get(obj.host, 0.0)
