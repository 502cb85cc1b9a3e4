# SPDX-License-Identifier: Apache-2.0
"""The filter, which asks Almanac."""

from __future__ import annotations

import threading
from typing import Any, Iterable

import nova.conf
from nova import exception
from nova.scheduler import filters
from oslo_log import log as logging

from almanac_nova import answer
from almanac_nova import client
from almanac_nova import passes
from almanac_nova import request

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF


class AlmanacFilter(filters.BaseHostFilter):
    """Keeps promised hosts for those to whom they are promised.

    Almanac is asked once in each scheduling pass, which is one for each
    instance: before it answers it remembers whose guest the instance becomes.
    """

    RUN_ON_REBUILD = False
    run_filter_once_per_request = False

    def __init__(self) -> None:
        self._client = client.load(CONF)
        self._thread = threading.local()

    def run_filter_for_index(self, index: int) -> bool:
        """Say that it runs for every instance. Nova asks right before filter_all."""
        self._thread.index = index
        return True

    def filter_all(self, filter_obj_list: Iterable[Any], spec_obj: Any) -> list[Any]:
        """Give the hosts that the request may use."""
        hosts = list(filter_obj_list)
        first, self._thread.index = getattr(self._thread, 'index', None) == 0, None
        if not hosts or request.is_rebuild(spec_obj):
            return hosts
        try:
            if passes.has_failed(spec_obj) and not first:
                raise answer.Failure('it has given no good answer for an instance before')
            got = self._client.ask(request.question(spec_obj, hosts))
        except Exception as failure:
            return self._without(failure, spec_obj, hosts, first)
        passes.keep(spec_obj, got.weights)
        left = [state for state in hosts if state.host in got.hosts]
        LOG.debug('Almanac refuses %(refused)s', {'refused': got.refused})
        if not left and got.refusal:
            return self._refuse(got.refusal, spec_obj, first)
        return left

    def _without(self, failure: Exception, spec: Any, hosts: list[Any], first: bool) -> list[Any]:
        passes.fail(spec)
        # The text of an error that is none of ours may have anything in it.
        why = str(failure) if isinstance(failure, answer.Failure) else type(failure).__name__
        LOG.error('Almanac gives no answer for instance %(instance)s: %(why)s',
                  {'instance': request.instance_of(spec), 'why': why}, exc_info=not isinstance(failure, answer.Failure))
        left = []
        if CONF.almanac.fail_open:
            try:
                left = request.unfenced(spec, hosts)
            except Exception:
                LOG.exception('The hosts outside the fence cannot be told')
        if not left:
            return self._refuse('the reservations cannot be looked up now; try again later', spec, first)
        return left

    @staticmethod
    def _refuse(why: str, spec: Any, first: bool) -> list[Any]:
        """Refuse all hosts. The tenant is told why.

        That takes Nova's exception, and it is raised for the first instance
        alone: nova-scheduler does not give back what it has claimed for those
        before when a filter raises one (nova/scheduler/manager.py _schedule).
        """
        LOG.info('Almanac has no host for instance %(instance)s: %(why)s', {'instance': request.instance_of(spec), 'why': why})
        if first:
            raise exception.NoValidHost(reason=why[:1].upper() + why[1:].rstrip('.') + '.')
        return []
