# SPDX-License-Identifier: Apache-2.0
"""Asks Almanac over HTTP."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from typing import Any, Callable, Mapping

from keystoneauth1 import loading
from oslo_config import cfg

from almanac_nova import answer
from almanac_nova import options

# 10,000 hosts, each with a long name, a reason and a weight, have less.
MOST_BYTES = 32 << 20
CHUNK = 1 << 14


class Client:
    """A client of one Almanac, which any number of threads may use."""

    def __init__(self, adapter: Any, timeout: float) -> None:
        self._adapter = adapter
        self._timeout = timeout

    def ask(self, question: Mapping[str, Any]) -> answer.Answer:
        """Ask which of the hosts in question may be used.

        It takes no longer than the time-out, or is a Failure, as everything is
        that goes wrong.
        """
        try:
            status, raw = self._within(lambda: self._post(question))
        except concurrent.futures.TimeoutError:
            raise answer.Failure(f'there is no answer within {self._timeout:g} s') from None
        except answer.Failure:
            raise
        except Exception as error:
            raise answer.Failure(f'{type(error).__name__}: {error}') from error
        if status != 200:
            raise answer.Failure(f'status {status} {answer.message(raw)}'.rstrip())
        return answer.read(raw, question['hosts'])

    def _within(self, call: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
        # keystoneauth bounds each wait for bytes alone. The thread ends by that.
        done: concurrent.futures.Future[tuple[int, bytes]] = concurrent.futures.Future()

        def run() -> None:
            try:
                done.set_result(call())
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=run, name='almanac', daemon=True).start()
        return done.result(self._timeout)

    def _post(self, question: Mapping[str, Any]) -> tuple[int, bytes]:
        end = time.monotonic() + self._timeout
        endpoint = (self._adapter.get_endpoint() or '').rstrip('/')
        if not endpoint:
            raise answer.Failure('Keystone has no endpoint of Almanac; see [almanac] service_type, region_name and endpoint_override')
        path = '/scheduler/weigh' if endpoint.endswith('/v1') else '/v1/scheduler/weigh'
        response = self._adapter.request(
            endpoint + path, 'POST', json=question, raise_exc=False, redirect=False, stream=True, log=False)
        with response:
            raw = b''
            for chunk in response.iter_content(CHUNK):
                raw += chunk
                if len(raw) > MOST_BYTES or time.monotonic() > end:
                    raise answer.Failure('the answer has no end')
            return response.status_code, raw


def load(conf: Any) -> Client:
    """Give the client that nova.conf describes. It connects when it is asked.

    Options that do not go together are an error of oslo.config or keystoneauth.
    """
    options.register(conf)
    group = conf[options.GROUP]
    auth = loading.load_auth_from_conf_options(conf, options.GROUP)
    if auth is None:
        raise cfg.RequiredOptError('auth_type', cfg.OptGroup(options.GROUP))
    if not group.timeout or group.timeout < 0:
        raise cfg.ConfigFileValueError('[almanac] timeout must be a number of seconds above 0')
    session = loading.load_session_from_conf_options(conf, options.GROUP, auth=auth)
    adapter = loading.load_adapter_from_conf_options(conf, options.GROUP, session=session)
    return Client(adapter, group.timeout)
