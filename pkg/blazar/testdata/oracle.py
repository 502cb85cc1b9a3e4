# SPDX-License-Identifier: Apache-2.0
"""Asks Blazar's own code which hosts queries select: reads a question as JSON from standard input and prints the answer.

{"database": URL of an empty database, "hosts": [{"row": columns, "capabilities": {name: text}}, ...],
"queries": [[hypervisor_properties, resource_properties], ...]}: for each pair the ids of the hosts, sorted, or the name
of an exception. It makes the tables and stores the hosts first."""

import contextlib
import functools
import json
import sys
import uuid
import warnings

warnings.simplefilter("ignore")

from blazar.db import api as db_api
from blazar.utils import plugins
from oslo_config import cfg


def store(host):
    db_api.host_create(host["row"])
    for name, text in host["capabilities"].items():
        db_api.host_extra_capability_create({
            "id": str(uuid.uuid4()), "computehost_id": host["row"]["id"], "property_name": name, "capability_value": text})


@functools.cache
def selected(*queries):
    """The hosts of the pool, as PhysicalHostPlugin._matching_hosts asks for them."""
    try:
        conditions = []
        for query in queries:
            if query:
                conditions += plugins.convert_requirements(query)
        return sorted(int(host["id"]) for host in db_api.reservable_host_get_all_by_queries(conditions))
    except Exception as problem:
        return type(problem).__name__


question = json.load(sys.stdin)
cfg.CONF([], project="blazar", default_config_files=[])
cfg.CONF.set_override("connection", question["database"], group="database")
with contextlib.redirect_stdout(sys.stderr):  # Blazar prints
    db_api.setup_db()
    for host in question["hosts"]:
        store(host)
    answer = [selected(*queries) for queries in question["queries"]]
print(json.dumps(answer))
