#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A Neutron without networks: it answers what Nova asks about servers created with `--nic none`.

neutron.py PORT

Nova asks for ports when it shows or deletes a server. Every list is empty, and nothing can be created.
"""
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

QUOTAS = ('floatingip', 'network', 'port', 'router', 'security_group', 'security_group_rule', 'subnet')


class Neutron(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def answer(self, code, body=None):
        data = b'' if body is None else json.dumps(body).encode()
        self.send_response(code)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, code, message):
        self.answer(code, {'NeutronError': {'type': 'NotFound', 'message': message, 'detail': ''}})

    def do_GET(self):
        path = self.path.split('?')[0].rstrip('/')
        listed = re.fullmatch(r'/v2\.0/([a-z_-]+)', path)
        if path == '':
            here = 'http://%s/v2.0/' % self.headers.get('Host')
            self.answer(200, {'versions': [
                {'id': 'v2.0', 'status': 'CURRENT', 'links': [{'rel': 'self', 'href': here}]}]})
        elif path == '/v2.0':
            self.answer(200, {'resources': []})
        elif path.startswith('/v2.0/quotas/'):
            self.answer(200, {'quota': dict.fromkeys(QUOTAS, -1)})
        elif listed:
            self.answer(200, {listed.group(1).replace('-', '_'): []})
        else:
            self.refuse(404, path)

    def take_body(self):
        self.rfile.read(int(self.headers.get('Content-Length') or 0))

    def do_DELETE(self):
        self.take_body()
        self.answer(204)

    def do_POST(self):
        self.take_body()
        self.refuse(404, 'this Neutron has no networks')

    do_PUT = do_POST

    def log_message(self, text, *values):
        print(self.log_date_time_string(), text % values, file=sys.stderr)


ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Neutron).serve_forever()
