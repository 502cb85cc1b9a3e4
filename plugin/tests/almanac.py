# SPDX-License-Identifier: Apache-2.0
"""An Almanac for tests, over HTTP, and requests of nova-scheduler for it."""

import http.server
import json
import threading
import types

import nova.conf
from nova import context
from nova.db.api import api
from nova.db.api import models
from nova import objects
from nova.objects import aggregate
from nova.scheduler import filters
from nova.scheduler import host_manager
from oslo_utils import uuidutils
from osprofiler import opts as osprofiler

import almanac_nova

CONF = nova.conf.CONF
PROJECT = '11111111111111111111111111111111'
RESERVATION = '5c6e3e52-0c0c-4d0e-9a4e-6a1f4f3f4c55'
DATABASE = []  # of all tests


class Almanac:
    """Answers as it is told, and keeps what it was asked."""

    def __init__(self):
        self.asked = []  # bodies
        self.answer = self.open  # gives the status and the body, from a question
        almanac = self
        self.stopped = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                question = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
                almanac.asked.append((self.path, question))
                status, body = almanac.answer(question)
                self.send_response(status)
                self.send_header('Content-Type', 'application/json')
                self.end_headers()
                try:
                    for part in body if isinstance(body, types.GeneratorType) else [encoded(body)]:
                        self.wfile.write(part)
                except OSError:
                    pass  # who has asked does not wait any more

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128  # of 5 that wait to be accepted, a busy machine resets the sixth

        self.server = Server(('127.0.0.1', 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = 'http://127.0.0.1:%d' % self.server.server_port

    def stop(self):
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def open(question):
        """Let all in. The later the name the better."""
        return 200, {'hosts': question['hosts'], 'refused': {}, 'weights': {host: ord(host[-1]) for host in question['hosts']}}

    @staticmethod
    def only(*hosts, refusal=None):
        """Let some in."""
        def answer(question):
            body = {
                'hosts': [host for host in question['hosts'] if host in hosts],
                'refused': {host: 'it is promised' for host in question['hosts'] if host not in hosts},
                'weights': {host: 1.5 for host in question['hosts']},
            }
            if refusal is not None:
                body['refusal'] = refusal
            return 200, body
        return answer

    def never(self, _question):
        """Answer when the test has ended."""
        self.stopped.wait(20)
        return 200, {}


def encoded(body):
    """Give the bytes of a body."""
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def configure(url, **options):
    """Set [almanac] of nova.conf."""
    almanac_nova.options.register(CONF)
    CONF([], project='nova', default_config_files=[], default_config_dirs=[])
    for name, value in dict({'auth_type': 'none', 'endpoint_override': url, 'timeout': 5}, **options).items():
        CONF.set_override(name, value, group='almanac')


def spec(**fields):
    """Give a RequestSpec of one instance."""
    extra_specs = fields.pop('extra_specs', {})
    values = dict({
        'project_id': PROJECT, 'instance_uuid': 'i1', 'num_instances': 1, 'scheduler_hints': {},
        'flavor': objects.Flavor(name='small', extra_specs=extra_specs),
        'ignore_hosts': None, 'force_hosts': None, 'force_nodes': None, 'requested_destination': None,
    }, **fields)
    return objects.RequestSpec(**values)


def host(name, **metadata):
    """Give a HostState that has heard of an aggregate with the metadata, where there is some."""
    state = host_manager.HostState(name, name, 'cell1')
    state.aggregates = [objects.Aggregate(metadata=metadata)] if metadata else []
    return state


def aggregates(**members):
    """Have in Nova's database, for this test, an aggregate with the metadata for each host."""
    if not DATABASE:
        osprofiler.set_defaults(CONF)
        CONF.set_override('connection', 'sqlite://', group='api_database')
        api.configure(CONF)
        DATABASE.append(api.get_engine())
        models.BASE.metadata.create_all(DATABASE[0])
    admin = context.get_admin_context()
    for one in objects.AggregateList.get_all(admin):  # nobody else is in it
        for name in one.hosts:
            aggregate._host_delete_from_db(admin, one.id, name)
        aggregate._aggregate_delete_from_db(admin, one.id)
    for name, metadata in members.items():
        made = aggregate._aggregate_create_in_db(admin, {'name': name, 'uuid': uuidutils.generate_uuid()}, metadata)
        aggregate._host_add_to_db(admin, made.id, name)


def names(hosts):
    """Give the names of hosts."""
    return [state.host for state in hosts]


def filtered(chosen, hosts, request, index=0):
    """Filter as nova-scheduler does."""
    return names(filters.HostFilterHandler().get_filtered_objects([chosen], hosts, request, index))
