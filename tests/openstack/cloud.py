#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Creates and awaits resources of the lab's cloud; those that exist stay as they are.

cloud.py URL PASSWORD image          the image `tiny`
cloud.py URL PASSWORD flavors        m1.tiny to m1.large
cloud.py URL PASSWORD computes N     waits until N hosts have reported and can take servers
cloud.py URL PASSWORD freepool       the aggregate of Blazar's hosts
cloud.py URL PASSWORD limits         Nova's unified limits; prints the ID of Nova's endpoint
cloud.py URL PASSWORD public         the external network `public` with its subnet
cloud.py URL PASSWORD nodes N        nodes of N hosts, at most 16, in Ironic: available and on
"""
import sys
import time

from session import Session

FLAVORS = {  # name: id, VCPUs, MiB, GB
    'm1.tiny': ('1', 1, 512, 1),
    'm1.small': ('2', 1, 2048, 20),
    'm1.medium': ('3', 2, 4096, 40),
    'm1.large': ('4', 4, 8192, 80),
}
LIMITS = {  # registered limits of the region, far above what tests use
    'servers': 1000, 'class:VCPU': 10000, 'class:MEMORY_MB': 10000000, 'class:DISK_GB': 1000000, 'server_groups': 100,
    'server_group_members': 100, 'server_metadata_items': 100, 'server_injected_files': 5, 'server_injected_file_content_bytes': 10240,
    'server_injected_file_path_bytes': 255, 'server_key_pairs': 100}
MICROVERSIONS = {'OpenStack-API-Version': 'compute 2.53, placement 1.39', 'X-OpenStack-Ironic-API-Version': '1.46'}
PATIENCE = 900  # seconds: many times what anything takes, since other work may have most of the machine
MOST_NODES = 16  # tests with more hosts need no more nodes


class Cloud(Session):
    def get(self, service, path):
        return self.request('GET', self.endpoints[service] + path, headers=MICROVERSIONS).json()

    def image(self):
        images = self.endpoints['image'] + '/v2/images'
        if self.get('image', '/v2/images?name=tiny&status=active')['images']:
            return
        made = self.request('POST', images, {
            'name': 'tiny', 'disk_format': 'raw', 'container_format': 'bare', 'visibility': 'public', 'min_disk': 1})
        self.request('PUT', '%s/%s/file' % (images, made.json()['id']), data=bytes(4096),
                     headers={'Content-Type': 'application/octet-stream'})

    def flavors(self):
        there = {flavor['name'] for flavor in self.get('compute', '/flavors')['flavors']}
        for name, (identity, vcpus, ram, disk) in FLAVORS.items():
            if name not in there:
                self.request('POST', self.endpoints['compute'] + '/flavors', {'flavor': {
                    'id': identity, 'name': name, 'vcpus': vcpus, 'ram': ram, 'disk': disk}})

    def freepool(self):
        there = {aggregate['name'] for aggregate in self.get('compute', '/os-aggregates')['aggregates']}
        if 'freepool' not in there:
            self.request('POST', self.endpoints['compute'] + '/os-aggregates', {'aggregate': {'name': 'freepool'}})

    def limits(self):
        service = self.request('GET', self.url + '/services?type=compute').json()['services'][0]['id']
        endpoint = self.request('GET', self.url + '/endpoints?interface=public&service_id=' + service).json()['endpoints'][0]
        there = {one['resource_name'] for one in self.request('GET', self.url + '/registered_limits').json()['registered_limits']}
        missing = [{'service_id': service, 'region_id': endpoint['region_id'], 'resource_name': name, 'default_limit': limit}
                   for name, limit in LIMITS.items() if name not in there]
        if missing:
            self.request('POST', self.url + '/registered_limits', {'registered_limits': missing})
        user = self.request('GET', self.url + '/users?name=nova').json()['users'][0]['id']
        role = self.request('GET', self.url + '/roles?name=reader').json()['roles'][0]['id']
        self.request('PUT', '%s/system/users/%s/roles/%s' % (self.url, user, role))
        print(endpoint['id'])

    def public(self):
        if self.get('network', '/v2.0/networks?name=public')['networks']:
            return
        made = self.request('POST', self.endpoints['network'] + '/v2.0/networks', {'network': {
            'name': 'public', 'router:external': True, 'shared': False,
            'provider:network_type': 'flat', 'provider:physical_network': 'public'}})
        self.request('POST', self.endpoints['network'] + '/v2.0/subnets', {'subnet': {
            'network_id': made.json()['network']['id'], 'name': 'public', 'ip_version': 4, 'cidr': '172.24.4.0/24',
            'gateway_ip': '172.24.4.1', 'allocation_pools': [{'start': '172.24.4.2', 'end': '172.24.4.99'}], 'enable_dhcp': False}})

    def computes(self, number):
        number = int(number)
        end = time.monotonic() + PATIENCE + 4 * number
        before = self.reports()
        while self.ready_hosts(before) < number:
            if time.monotonic() > end:
                raise SystemExit('%d of %d computes are up' % (self.ready_hosts(before), number))
            time.sleep(max(0.5, number / 50))  # counting more hosts is more work

    def reports(self):
        """Returns when each nova-compute reported last."""
        services = self.get('compute', '/os-services?binary=nova-compute')['services']
        return {one['host']: one['updated_at'] for one in services}

    def ready_hosts(self, before):
        """Returns how many hosts have reported since those reports, are up, belong to the cell and have their inventory in
        Placement. Nova considers a host up long after its last report: its nova-compute may have lost the broker.
        """
        reported = {host for host, at in self.reports().items() if at != before.get(host)}
        hypervisors = self.get('compute', '/os-hypervisors/detail?limit=1000')['hypervisors']
        up = {one['hypervisor_hostname'] for one in hypervisors if one['state'] == 'up'}
        # a provider of generation 0 has no inventory
        providers = self.get('placement', '/resource_providers')['resource_providers']
        return len(reported & up & {one['name'] for one in providers if one['generation'] > 0})

    def nodes(self, number):
        names = ['cmp-%03d' % n for n in range(1, min(int(number), MOST_NODES) + 1)]
        there = {node['name']: node for node in self.get('baremetal', '/v1/nodes')['nodes']}
        if all(name in there and there[name]['provision_state'] == 'available' and there[name]['power_state'] for name in names):
            return
        for name in names:
            if name not in there:
                self.baremetal('POST', '', {'name': name, 'driver': 'fake-hardware'})
        for before, verb, after in (('enroll', 'manage', 'manageable'), ('manageable', 'provide', 'available')):
            moved = [name for name in names if self.node(name)['provision_state'] == before]
            for name in moved:
                self.baremetal('PUT', '/%s/states/provision' % name, {'target': verb})
            for name in moved:
                self.until(name, 'provision_state', after)
        off = [name for name in names if self.node(name)['power_state'] is None]
        for name in off:
            self.baremetal('PUT', '/%s/states/power' % name, {'target': 'power on'})
        for name in off:
            self.until(name, 'power_state', 'power on')

    def baremetal(self, method, path, body):
        self.request(method, self.endpoints['baremetal'] + '/v1/nodes' + path, body, headers=MICROVERSIONS)

    def node(self, name):
        return self.get('baremetal', '/v1/nodes/' + name)

    def until(self, name, field, value):
        end = time.monotonic() + PATIENCE
        while self.node(name)[field] != value:
            if time.monotonic() > end:
                raise SystemExit('the node %s is not %s: %s' % (name, value, self.node(name)))
            time.sleep(0.1)


def main(url, password, verb, *arguments):
    getattr(Cloud(url, password), verb)(*arguments)


main(*sys.argv[1:])
