# SPDX-License-Identifier: Apache-2.0
"""Answers questions about Nova's objects with Nova's own code.

Reads a JSON list of [question, value] from standard input and prints the list of
answers. A question that Nova answers with an exception gets {"error": its class}.
"""

import json
import logging
import sys
from unittest import mock

import nova.conf
from nova import context
from nova.db.api import api as database
from nova.db.api import models
from nova import objects
from nova.objects import aggregate
from nova.objects import base
from nova.scheduler import request_filter
from nova.scheduler import utils
from nova.virt import hardware
from osprofiler import opts as osprofiler

logging.disable()
objects.register_all()
CONF = nova.conf.CONF
osprofiler.set_defaults(CONF)
CONF([], project="nova", default_config_files=[])
CONTEXT = context.get_admin_context()
SERIALIZER = base.NovaObjectSerializer()


def read(value):
    return SERIALIZER.deserialize_entity(CONTEXT, value)


def spec(value):
    """What Nova sees in a RequestSpec, and what it would send on."""
    s = read(value)
    destination = s.requested_destination
    return {
        "kind": type(s).__name__,
        "aggregates": destination and destination.aggregates,
        "forbidden_aggregates": sorted(destination and destination.forbidden_aggregates or []),
        "host": destination.host if destination and "host" in destination else None,
        "allow_cross_cell_move": destination and destination.allow_cross_cell_move,
        "database": destination.cell.database_connection
        if destination and "cell" in destination and destination.cell else None,
        "ignore_hosts": s.ignore_hosts,
        "extra_specs": s.flavor.extra_specs,
        "query": ask(s)["query"],
    }


def asked(value):
    """What nova-scheduler would ask of Placement."""
    return ask(read(value))


def prefiltered(value):
    """The same in a cloud with these options and aggregates, after all request filters."""
    for option, on in value["options"].items():
        CONF.set_override(option, on, group="scheduler")
    keep(value["aggregates"])
    s = read(value["spec"])
    request_filter.process_reqspec(CONTEXT, s)
    return told(s)


KEPT = {}


def keep(aggregates):
    """Keeps these aggregates alone in Nova's API database."""
    if not KEPT:
        CONF.set_override("connection", "sqlite://", group="api_database")
        database.configure(CONF)
        models.BASE.metadata.create_all(database.get_engine())
    if KEPT.get("aggregates") == aggregates:
        return
    KEPT["aggregates"] = aggregates
    # The methods of the objects would notify too.
    for a in objects.AggregateList.get_all(CONTEXT):
        aggregate._aggregate_delete_from_db(CONTEXT, a.id)
    for a in aggregates:
        aggregate._aggregate_create_in_db(CONTEXT, {"name": a["uuid"], "uuid": a["uuid"]}, a["metadata"])


def ask(s):
    for fill in (request_filter.compute_status_filter, request_filter.accelerators_filter,
                 request_filter.ephemeral_encryption_filter):
        fill(CONTEXT, s)
    return told(s)


def told(s):
    """What nova-scheduler asks of Placement for a request that is filtered."""
    hosts = mock.Mock()
    # Of two nodes none is asked for by itself, so that no query names one.
    hosts.get_compute_nodes_by_host_or_node.return_value = [None, None]
    resources = utils.resources_from_request_spec(CONTEXT, s, hosts)
    groups = dict(resources._rg_by_id)
    own = groups.pop(None, None) or objects.RequestGroup()
    own.obj_set_defaults(*[f for f in own.fields if f not in own])
    return {
        "query": resources.to_querystring(),
        "resources": own.resources,
        "required": sorted(own.required_traits),
        "forbidden": sorted(own.forbidden_traits | s.root_forbidden),
        "member_of": own.aggregates,
        "not_member_of": sorted(own.forbidden_aggregates),
        "root_required": sorted(s.root_required),
        "rebuild": utils.request_is_rebuild(s),
        # What is in none of these is nothing that stocks and traits can tell.
        "more": bool(groups or resources._same_subtree or s.numa_topology
                     or hardware.numa_get_constraints(s.flavor, s.image)),
    }


def answer(value):
    """What nova-conductor sees in an answer of select_destinations."""
    return [[{
        "kind": type(s).__name__,
        "dict": s.to_dict(),
        "cell": s.cell_uuid,
        "node": s.compute_node_uuid,
        "zone": s.availability_zone,
        "version": s.allocation_request_version,
        "request": json.loads(s.allocation_request),
        "changes": sorted(s.obj_what_changed()),
    } for s in read(one)] for one in value]


QUESTIONS = {"spec": spec, "asked": asked, "prefiltered": prefiltered, "answer": answer}


def main():
    answers = []
    for question, value in json.load(sys.stdin):
        try:
            answers.append(QUESTIONS[question](value))
        except Exception as e:
            answers.append({"error": type(e).__name__, "message": str(e)})
    json.dump(answers, sys.stdout)


main()
