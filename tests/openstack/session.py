# SPDX-License-Identifier: Apache-2.0
"""HTTP requests as the lab's admin."""
import requests


class Session:
    """A session of the admin. endpoints maps each service type of the catalog to its URL."""

    def __init__(self, url, password):
        self.url = url
        self.http = requests.Session()
        self.http.trust_env = False
        reply = self.request('POST', url + '/auth/tokens', {'auth': {
            'identity': {'methods': ['password'], 'password': {'user': {
                'name': 'admin', 'domain': {'id': 'default'}, 'password': password}}},
            'scope': {'project': {'name': 'admin', 'domain': {'id': 'default'}}}}})
        self.http.headers['X-Auth-Token'] = reply.headers['X-Subject-Token']
        self.endpoints = {service['type']: service['endpoints'][0]['url']
                          for service in reply.json()['token']['catalog'] if service['endpoints']}

    def request(self, method, url, body=None, **options):
        reply = self.http.request(method, url, json=body, timeout=300, **options)
        if not reply.ok:
            raise SystemExit('%s %s: %d %s' % (method, url, reply.status_code, reply.text))
        return reply
