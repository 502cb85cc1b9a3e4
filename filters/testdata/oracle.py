"""Asks Nova's own filters: reads {"hosts": [...], "aggregates": [...], "requests": [...]} and prints for each
request and each filter a list with "yes", "no" or "error" for each host."""

import json
import sys
import types
import warnings

warnings.simplefilter("ignore")

from nova import conf, objects
from nova.scheduler import host_manager
from nova.scheduler.filters import (affinity_filter, aggregate_multitenancy_isolation, availability_zone_filter,
                                    compute_capabilities_filter, extra_specs_ops, image_props_filter)

objects.register_all()
conf.CONF([], project="nova", default_config_files=[])

FILTERS = {
    "ComputeCapabilitiesFilter": compute_capabilities_filter.ComputeCapabilitiesFilter(),
    "ImagePropertiesFilter": image_props_filter.ImagePropertiesFilter(),
    "ServerGroupAffinityFilter": affinity_filter.ServerGroupAffinityFilter(),
    "ServerGroupAntiAffinityFilter": affinity_filter.ServerGroupAntiAffinityFilter(),
    "AvailabilityZoneFilter": availability_zone_filter.AvailabilityZoneFilter(),
    "AggregateMultiTenancyIsolation": aggregate_multitenancy_isolation.AggregateMultiTenancyIsolation(),
}


def state(host, aggregates):
    h = host_manager.HostState(host["name"], host["node"], host["cell"])
    for key, value in host["attributes"].items():
        setattr(h, key, value)
    h.hypervisor_hostname = host["node"]
    h.stats = {"io_workload": host["attributes"]["num_io_ops"]}
    h.instances = {i: None for i in host["instances"]}
    h.aggregates = [objects.Aggregate(metadata=a["metadata"]) for a in aggregates if host["name"] in a["hosts"]]
    return h


def spec(request):
    group = request["group"]
    if group:
        group = objects.InstanceGroup(
            uuid=group["id"], policy=group["policy"], policies=[group["policy"]], hosts=group["hosts"], members=group["members"],
            _rules={"max_server_per_host": str(group["most"])} if group["most"] else {})
    return types.SimpleNamespace(
        flavor=objects.Flavor(extra_specs=request["extra_specs"]),
        image=types.SimpleNamespace(properties=request["image"]),
        instance_group=group, instance_uuid=request["instance"],
        availability_zone=request["zone"], project_id=request["project"])


def answer(ask, *args):
    try:
        return "yes" if ask(*args) else "no"
    except Exception:
        return "error"


def main():
    question = json.load(sys.stdin)
    if "matches" in question:
        json.dump([answer(extra_specs_ops.match, *m) for m in question["matches"]], sys.stdout)
        return
    hosts = [state(h, question["aggregates"]) for h in question["hosts"]]
    json.dump([{name: [answer(f.host_passes, h, s) for h in hosts] for name, f in FILTERS.items()}
               for s in map(spec, question["requests"])], sys.stdout)


main()
