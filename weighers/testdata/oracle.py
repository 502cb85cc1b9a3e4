# SPDX-License-Identifier: Apache-2.0
"""Asks Nova's own weighers: reads a list of {"weighers": [...], "multipliers": {...}, "hosts": [...],
"aggregates": [...], "requests": [...]} and prints for each the names of the weighers, and for each request a list of
[name, weight], the best host first."""

import json
import logging
import sys
import types
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

from nova import conf, objects
from nova.scheduler import host_manager, weights

objects.register_all()
conf.CONF([], project="nova", default_config_files=[])


def state(host, aggregates):
    h = host_manager.HostState(host["name"], host["name"], host["cell"])
    for key, value in host["attributes"].items():
        setattr(h, key, value)
    h.instances = {i: None for i in host["instances"]}
    h.pci_stats = types.SimpleNamespace(pools=[{"count": n} for n in host["pools"]])
    h.aggregates = [objects.Aggregate(metadata=a["metadata"]) for a in aggregates if host["name"] in a["hosts"]]
    return h


def spec(request):
    group, destination = None, None
    if request["policy"]:
        group = objects.InstanceGroup(policy=request["policy"], members=request["members"])
    if request["cell"]:
        destination = objects.Destination(
            cell=objects.CellMapping(uuid=request["cell"]), allow_cross_cell_move=request["leaves"])
    return objects.RequestSpec(instance_group=group, requested_destination=destination)


def answer(world):
    for option, value in world["multipliers"].items():
        metrics = option == "metrics_weight_multiplier"
        conf.CONF.set_override("weight_multiplier" if metrics else option, value, "metrics" if metrics else "filter_scheduler")
    handler = weights.HostWeightHandler()
    weighers = [cls() for cls in handler.get_matching_classes(world["weighers"])]
    hosts = {h["name"]: state(h, world["aggregates"]) for h in world["hosts"]}
    answers = []
    for request in world["requests"]:
        among = [hosts[name] for name in request["hosts"]]
        answers.append([[w.obj.host, w.weight] for w in handler.get_weighed_objects(weighers, among, spec(request))])
    return {"classes": sorted(type(w).__name__ for w in weighers), "answers": answers}


json.dump([answer(world) for world in json.load(sys.stdin)], sys.stdout)
