#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Creates the lab's projects, roles, users and catalog in Keystone; those that exist stay.

identity.py URL PASSWORD TYPE=URL...    one endpoint for each service type
"""
import sys

from session import Session

PROJECTS = ('service', 'demo', 'demo2')
ROLES = ('admin', 'member', 'reader', 'service')
SERVICES = {  # type: name
    'identity': 'keystone',
    'compute': 'nova',
    'placement': 'placement',
    'image': 'glance',
    'network': 'neutron',
    'baremetal': 'ironic',
    'reservation': 'blazar',
}
GRANTS = {  # user: its project, its roles
    'demo': ('demo', ['member']),
    'demo2': ('demo2', ['member']),
    'reader': ('demo', ['reader']),
    'almanac': ('service', ['admin', 'service']),
    'nova': ('service', ['admin', 'service']),
    'placement': ('service', ['admin', 'service']),
    'glance': ('service', ['admin', 'service']),
    'neutron': ('service', ['admin', 'service']),
    'ironic': ('service', ['admin', 'service']),
    'blazar': ('service', ['admin', 'service']),
}


class Keystone(Session):
    def keystone(self, method, path, body=None):
        return self.request(method, '%s/%s' % (self.url, path), body)

    def ensure(self, kind, name, **attributes):
        """Returns the id of the project, role, user or service of that name; creates it if it is missing."""
        found = self.keystone('GET', '%ss?name=%s' % (kind, name)).json()[kind + 's']
        if found:
            return found[0]['id']
        body = {kind: dict(attributes, name=name)}
        return self.keystone('POST', kind + 's', body).json()[kind]['id']

    def lead(self, service, url):
        """Sets the URL of all interfaces of a service."""
        found = self.keystone('GET', 'endpoints?service_id=' + service).json()['endpoints']
        there = {endpoint['interface']: endpoint for endpoint in found}
        for interface in ('public', 'internal', 'admin'):
            body = {'endpoint': {'service_id': service, 'interface': interface, 'region': 'RegionOne', 'url': url}}
            if interface not in there:
                self.keystone('POST', 'endpoints', body)
            elif there[interface]['url'] != url:
                self.keystone('PATCH', 'endpoints/' + there[interface]['id'], body)


def main(url, password, *catalog):
    keystone = Keystone(url, password)
    roles = {name: keystone.ensure('role', name) for name in ROLES}
    projects = {name: keystone.ensure('project', name, domain_id='default') for name in PROJECTS}
    for name, (project, granted) in GRANTS.items():
        user = keystone.ensure('user', name, domain_id='default', password=password)
        for role in granted:
            keystone.keystone('PUT', 'projects/%s/users/%s/roles/%s' % (projects[project], user, roles[role]))
    for entry in catalog:
        kind, address = entry.split('=', 1)
        keystone.lead(keystone.ensure('service', SERVICES[kind], type=kind), address)


main(*sys.argv[1:])
