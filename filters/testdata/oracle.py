# SPDX-License-Identifier: Apache-2.0
"""Asks Nova's own filters: reads a question as JSON from standard input and prints the answer.

{"matches": [[value, asked], ...]}: of each pair "yes", "no" or "error".
{"worlds": [{"hosts", "aggregates", "options", "filters", "requests", "chains"}, ...]}: for each world "answers", for
each request and each filter a letter for each host: "y", "n", "e" for an exception, "?" where it depends on the order of
a set; and "chains", for each the hosts that its instances get, one after the other, null where there is none, or "error".
"filters" are the paths of all of Nova's."""

import copy
import json
import sys
import types
import warnings

warnings.simplefilter("ignore")

from nova import conf, objects
from nova.scheduler import filters, host_manager
from nova.scheduler.filters import aggregate_instance_extra_specs, extra_specs_ops, utils

objects.register_all()
conf.CONF([], project="nova", default_config_files=[])


class Partly(types.SimpleNamespace):
    """An object of which Nova asks what it has."""

    def __contains__(self, name):
        return hasattr(self, name)


def state(host, aggregates):
    h = host_manager.HostState(host["name"], host["node"], host["cell"])
    for key, value in host["attributes"].items():
        setattr(h, key, value)
    h.hypervisor_hostname = host["node"]
    h.stats = {"io_workload": host["attributes"]["num_io_ops"]}
    h.instances = {i: None for i in host["instances"]}
    h.aggregates = [objects.Aggregate(metadata=a["metadata"]) for a in aggregates if host["name"] in a["hosts"]]
    h.metrics = []
    return h


def spec(request):
    group = request["group"]
    if group:
        group = objects.InstanceGroup(
            uuid=group["id"], policy=group["policy"], policies=[group["policy"]], hosts=group["hosts"], members=group["members"],
            _rules={"max_server_per_host": str(group["most"])} if group["most"] else {})
    image = Partly(properties=request["image"])
    if request["image_id"]:
        image.id = request["image_id"]
    hints = objects.RequestSpec(scheduler_hints=request["hints"])
    return Partly(
        get_scheduler_hint=hints.get_scheduler_hint,
        flavor=objects.Flavor(extra_specs=request["extra_specs"], name=request["flavor"]),
        image=image, instance_group=group, instance_uuid=request["instance"], scheduler_hints=request["hints"],
        availability_zone=request["zone"], project_id=request["project"], pci_requests=None, numa_topology=None,
        vcpus=1, memory_mb=512, root_gb=1, ephemeral_gb=0)


def answer(ask, *args):
    try:
        return "y" if ask(*args) else "n"
    except Exception:
        return "e"


by_host = utils.aggregate_metadata_get_by_host


def in_any_order(question):
    """Returns the answers to a question, asked twice: a filter that walks a set does so in two orders."""
    answers = []
    for order in (sorted, lambda values: sorted(values, reverse=True)):
        aggregate_instance_extra_specs.utils = types.SimpleNamespace(
            aggregate_metadata_get_by_host=lambda h: {k: order(v) for k, v in by_host(h).items()})
        answers.append(question())
    aggregate_instance_extra_specs.utils = utils
    return answers


def ask(name, f, h, s):
    if name != "AggregateInstanceExtraSpecsFilter" or not s.flavor.extra_specs:
        return answer(f._filter_one, h, s)
    one, other = in_any_order(lambda: answer(f._filter_one, h, s))
    return one if one == other else "?"


def chain(*args):
    """Places instances one after the other. What depends on the order of a set is an error too."""
    one, other = in_any_order(lambda: chain_once(*args))
    return one if one == other else "error"


def chain_once(handler, known, hosts, request, chain):
    """Places instances one after the other as nova/scheduler/manager.py does, on the first of the hosts by name."""
    hosts, s, picks = copy.deepcopy(hosts), spec(request), []
    for index, instance in enumerate(chain["instances"]):
        s.instance_uuid = instance
        try:
            hosts = handler.get_filtered_objects([known[name] for name in chain["filters"]], hosts, s, index)
        except Exception:
            return "error"
        if not hosts:
            return picks + [None]
        picked = min(hosts, key=lambda h: h.host)
        picks.append(picked.host)
        picked.consume_from_request(s)
        if s.instance_group is not None:
            s.instance_group.hosts.append(picked.host)
            picked.instances[instance] = None
    return picks


def asked(world, known):
    for option, value in world["options"].items():
        conf.CONF.set_override(option, value, group="filter_scheduler")
    hosts = [state(h, world["aggregates"]) for h in world["hosts"]]
    handler = filters.HostFilterHandler()
    return {
        "answers": [{name: "".join(ask(name, known[name], h, s) for h in hosts) for name in world["filters"]}
                    for s in map(spec, world["requests"])],
        "chains": [chain(handler, known, hosts, world["requests"][c["request"]], c) for c in world["chains"]],
    }


def main():
    question = json.load(sys.stdin)
    if "matches" in question:
        words = {"y": "yes", "n": "no", "e": "error"}
        json.dump([words[answer(extra_specs_ops.match, *m)] for m in question["matches"]], sys.stdout)
        return
    classes = filters.all_filters()
    known = {cls.__name__: cls() for cls in classes}
    json.dump({
        "filters": [cls.__module__ + "." + cls.__name__ for cls in classes],
        "worlds": [asked(world, known) for world in question["worlds"]],
    }, sys.stdout)


main()
