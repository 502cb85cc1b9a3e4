#!/usr/bin/python3
"""Makes the lab's projects, roles and users in Keystone; harmless when they are there.

identity.py URL PASSWORD
"""
import sys

import requests

PROJECTS = ('service', 'demo', 'demo2')
ROLES = ('admin', 'member', 'reader', 'service')
GRANTS = {  # user: its project, its roles
    'demo': ('demo', ['member']),
    'demo2': ('demo2', ['member']),
    'reader': ('demo', ['reader']),
    'almanac': ('service', ['admin', 'service']),
}


class Keystone:
    def __init__(self, url, password):
        self.url = url
        self.session = requests.Session()
        self.session.trust_env = False
        reply = self.request('POST', 'auth/tokens', {'auth': {
            'identity': {'methods': ['password'], 'password': {'user': {
                'name': 'admin', 'domain': {'id': 'default'}, 'password': password}}},
            'scope': {'project': {'name': 'admin', 'domain': {'id': 'default'}}}}})
        self.session.headers['X-Auth-Token'] = reply.headers['X-Subject-Token']

    def request(self, method, path, body=None):
        reply = self.session.request(method, '%s/%s' % (self.url, path), json=body, timeout=60)
        if not reply.ok:
            raise SystemExit('%s %s: %d %s' % (method, path, reply.status_code, reply.text))
        return reply

    def ensure(self, kind, name, **attributes):
        """The id of the project, role or user of that name."""
        found = self.request('GET', '%ss?name=%s' % (kind, name)).json()[kind + 's']
        if found:
            return found[0]['id']
        body = {kind: dict(attributes, name=name)}
        return self.request('POST', kind + 's', body).json()[kind]['id']


def main(url, password):
    keystone = Keystone(url, password)
    roles = {name: keystone.ensure('role', name) for name in ROLES}
    projects = {name: keystone.ensure('project', name, domain_id='default') for name in PROJECTS}
    for name, (project, granted) in GRANTS.items():
        user = keystone.ensure('user', name, domain_id='default', password=password)
        for role in granted:
            keystone.request('PUT', 'projects/%s/users/%s/roles/%s' % (projects[project], user, roles[role]))


main(*sys.argv[1:])
