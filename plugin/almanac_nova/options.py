# SPDX-License-Identifier: Apache-2.0
"""The options of nova.conf, in its section [almanac]."""

from __future__ import annotations

from typing import Any

from keystoneauth1 import loading
from oslo_config import cfg

GROUP = 'almanac'

OPTIONS = [
    cfg.BoolOpt(
        'fail_open', default=False,
        help='What becomes of a request when Almanac gives no good answer in time. '
             'False: it finds no host. True: hosts that are in no aggregate of '
             'Almanac may be used; a request with the hint reservation finds no '
             'host even so.'),
    cfg.FloatOpt(
        'almanac_weight_multiplier', default=1.0,
        help='How much the weights of Almanac count beside those of other '
             'weighers. Metadata of an aggregate with this name overrides it for '
             'the hosts of the aggregate.'),
]


def register(conf: Any) -> None:
    """Register the options, also those of keystoneauth, as Nova's other clients have."""
    # timeout is keystoneauth's too. Without one it would wait for ever.
    session = loading.get_session_conf_options()
    cfg.set_defaults(session, timeout=5)
    adapter = loading.get_adapter_conf_options(include_deprecated=False)
    cfg.set_defaults(adapter, service_type='reservation', service_name='almanac', valid_interfaces=['internal', 'public'])
    conf.register_opts(OPTIONS + session + adapter, group=GROUP)
    loading.register_auth_conf_options(conf, GROUP)
