# SPDX-License-Identifier: Apache-2.0
"""What Almanac answers to POST /v1/scheduler/weigh."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, Collection, Mapping


class Failure(Exception):
    """Almanac has given no good answer."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """Which hosts a request may use, and how good they are for it."""

    hosts: frozenset[str]
    refused: Mapping[str, str]  # why, by host
    weights: Mapping[str, float]  # by host
    refusal: str  # what the tenant is told where there is no host; may be empty


def read(raw: bytes, asked: Collection[str]) -> Answer:
    """Read an answer about hosts.

    It says of each of them whether it may be used, and has a weight for it;
    anything else is a Failure.
    """
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise Failure('the answer is not JSON') from None
    if not isinstance(body, dict):
        raise Failure('the answer is not an object')
    hosts, refused, weights, refusal = (body.get(name) for name in ('hosts', 'refused', 'weights', 'refusal'))
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise Failure('hosts is not a list of names')
    if not isinstance(refused, dict) or not all(isinstance(reason, str) for reason in refused.values()):
        raise Failure('refused does not give reasons by host')
    if not isinstance(weights, dict) or not all(_is_weight(weight) for weight in weights.values()):
        raise Failure('weights does not give numbers by host')
    if not isinstance(refusal, (str, type(None))):
        raise Failure('refusal is not a sentence')
    if set(hosts) & set(refused) or set(hosts) | set(refused) != set(asked):
        raise Failure('the answer is not about the hosts that were asked for')
    if not set(asked) <= set(weights):
        raise Failure('a host has no weight')
    return Answer(frozenset(hosts), refused, weights, refusal or '')


def _is_weight(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e100 and math.isfinite(value)


def message(raw: bytes) -> str:
    """Give what an error of Almanac says; empty where it is none."""
    try:
        said = json.loads(raw)['error']['message']
    except (ValueError, RecursionError, KeyError, TypeError):
        return ''
    return said[:200] if isinstance(said, str) else ''
