# SPDX-License-Identifier: Apache-2.0
"""Almanac's filter and weigher for nova-scheduler."""

from almanac_nova.filter import AlmanacFilter
from almanac_nova.weigher import AlmanacWeigher

__all__ = ['AlmanacFilter', 'AlmanacWeigher']
