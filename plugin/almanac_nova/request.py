# SPDX-License-Identifier: Apache-2.0
"""What Almanac has to know of a request and the hosts for it.

In types Nova's RequestSpec and HostState are Any: Nova has no types.
"""

from __future__ import annotations

from typing import Any, Iterable

from nova import context
from nova import objects
from nova.scheduler import utils

# As Almanac names them: a hint, and metadata of flavors and aggregates.
HINT = 'reservation'
MARK = 'almanac:reservation'
RESERVED = 'trait:CUSTOM_ALMANAC_RESERVED'


def is_rebuild(spec: Any) -> bool:
    """Say whether an instance is rebuilt where it is.

    Anybody may write the hint by which Nova tells; with the host that the
    instance is on it is Nova's (nova/compute/api.py rebuild).
    """
    return bool(utils.request_is_rebuild(spec)) and bool(spec.force_hosts)


def question(spec: Any, hosts: Iterable[Any]) -> dict[str, Any]:
    """Give the body of POST /v1/scheduler/weigh.

    It has no more of the request than the reservations' owners are told by.
    """
    return {
        'hosts': sorted({state.host for state in hosts}),
        'request': {
            'project_id': spec.project_id,
            'hints': hints(spec),
            'extra_specs': extra_specs(spec),
            'instances': [instance] if (instance := instance_of(spec)) else [],
        },
    }


def hints(spec: Any) -> dict[str, list[str]]:
    """Give the scheduler hints."""
    return dict(spec.scheduler_hints or {}) if 'scheduler_hints' in spec else {}


def extra_specs(spec: Any) -> dict[str, str]:
    """Give the extra specs of the flavor."""
    return dict(spec.flavor.extra_specs or {}) if 'extra_specs' in spec.flavor else {}


def instance_of(spec: Any) -> str | None:
    """Give the id of the instance for which a host is looked for in this pass."""
    return spec.instance_uuid if 'instance_uuid' in spec else None


def unfenced(spec: Any, hosts: Iterable[Any]) -> list[Any]:
    """Give the hosts that may be used without breaking a reservation, without Almanac.

    What is promised lies in the fence, an aggregate of Nova. It is read from
    Nova's database: what nova-scheduler hears of an aggregate that changes
    often may come in another order. Into a reservation only its flavor leads
    then, since nobody else could remember whose the instance is.
    """
    if HINT in hints(spec):
        return []
    mark = extra_specs(spec).get(MARK)
    if mark is not None:
        inside = _members(objects.AggregateList.get_by_metadata(context.get_admin_context(), key=MARK, value=mark))
        return [state for state in hosts if state.host in inside]
    fenced = _members(objects.AggregateList.get_by_metadata_key(context.get_admin_context(), RESERVED))
    return [state for state in hosts if state.host not in fenced]


def _members(aggregates: Iterable[Any]) -> set[str]:
    return {host for aggregate in aggregates for host in aggregate.hosts}
