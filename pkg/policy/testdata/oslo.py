# SPDX-License-Identifier: Apache-2.0
"""Decides as oslo.policy does: reads {rules, questions: [{rule, target, creds}]} and writes a list of booleans."""
import json
import sys
import types

from oslo_policy import _checks
from oslo_policy import _parser

asked = json.load(sys.stdin)
enforcer = types.SimpleNamespace(rules={name: _parser.parse_rule(check) for name, check in asked['rules'].items()})
json.dump([bool(_checks._check(enforcer.rules[q['rule']], q['target'], q['creds'], enforcer, q['rule']))
           for q in asked['questions']], sys.stdout)
