# SPDX-License-Identifier: Apache-2.0
"""The plugin inside Nova's own handlers of filters and weighers, against an Almanac that misbehaves."""

import logging
import threading
import time
import unittest

from nova import exception
from nova import objects
from nova.scheduler import filters
from nova.scheduler import weights

import almanac_nova
from almanac_nova import answer
from tests import almanac

RESERVED = {'trait:CUSTOM_ALMANAC_RESERVED': 'required'}
OWN = dict(RESERVED, **{'almanac:reservation': almanac.RESERVATION})
ABC = ['a', 'b', 'c']


class TestCase(unittest.TestCase):
    options = {}

    def setUp(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        objects.register_all()
        self.almanac = almanac.Almanac()
        self.addCleanup(self.almanac.stop)
        almanac.configure(self.almanac.url, **self.options)
        almanac.aggregates()
        self.addCleanup(almanac.CONF.reset)
        self.addCleanup(almanac.CONF.clear)
        self.filter = almanac_nova.AlmanacFilter()
        self.hosts = [almanac.host(name) for name in ABC]

    def filtered(self, request, index=0, hosts=None):
        return almanac.filtered(self.filter, self.hosts if hosts is None else hosts, request, index)

    def refused(self, request, **more):
        """Give what the tenant is told."""
        with self.assertRaises(exception.NoValidHost) as raised:
            self.filtered(request, **more)
        return raised.exception.format_message()

    def weighed(self, request, hosts=None, multiplier=None):
        weigher = almanac_nova.AlmanacWeigher()
        found = weights.HostWeightHandler().get_weighed_objects([weigher], self.hosts if hosts is None else hosts, request)
        return [(one.obj.host, one.weight) for one in found]


class AsksOnce(TestCase):
    def test_filter_and_weigher_share_an_answer(self):
        request = almanac.spec(scheduler_hints={'reservation': [almanac.RESERVATION]}, extra_specs={'hw:x': '1'})
        self.assertEqual(ABC, self.filtered(request))
        self.assertEqual([('c', 99.0), ('b', 98.0), ('a', 97.0)], self.weighed(request))
        self.assertEqual([('/v1/scheduler/weigh', {'hosts': ABC, 'request': {
            'project_id': almanac.PROJECT, 'hints': {'reservation': [almanac.RESERVATION]}, 'extra_specs': {'hw:x': '1'}, 'instances': ['i1'],
        }})], self.almanac.asked)

    def test_once_for_each_instance(self):
        request = almanac.spec(num_instances=2)
        self.filtered(request)
        request.instance_uuid = 'i2'
        self.almanac.answer = self.almanac.only('b')
        self.assertEqual(['b'], self.filtered(request, index=1))
        self.assertEqual([['i1'], ['i2']], [question['request']['instances'] for _, question in self.almanac.asked])
        self.assertEqual([('a', 1.5), ('b', 1.5), ('c', 1.5)], sorted(self.weighed(request)))

    def test_a_host_of_several_nodes_once(self):
        self.hosts.append(almanac.host('a'))
        self.almanac.answer = self.almanac.only('a')
        self.assertEqual(['a', 'a'], self.filtered(almanac.spec()))
        self.assertEqual(ABC, self.almanac.asked[0][1]['hosts'])

    def test_an_endpoint_may_have_the_version(self):
        almanac.configure(self.almanac.url + '/v1/')
        self.filter = almanac_nova.AlmanacFilter()
        self.assertEqual(ABC, self.filtered(almanac.spec()))
        self.assertEqual('/v1/scheduler/weigh', self.almanac.asked[0][0])

    def test_requests_of_several_threads_keep_apart(self):
        results = {}

        def one(name):
            request = almanac.spec(instance_uuid=name)
            self.filtered(request, hosts=[almanac.host(name + 'a'), almanac.host(name + 'b')])
            results[name] = self.weighed(request, hosts=[almanac.host(name + 'a'), almanac.host(name + 'b')])

        threads = [threading.Thread(target=one, args=(f'i{i}',)) for i in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({f'i{i}': [(f'i{i}b', 98.0), (f'i{i}a', 97.0)] for i in range(20)}, results)

    def test_nothing_to_filter(self):
        self.assertEqual([], self.filtered(almanac.spec(), hosts=[]))
        self.assertEqual([], self.almanac.asked)


class Rebuild(TestCase):
    rebuild = {'_nova_check_type': ['rebuild']}

    def test_is_not_asked_about(self):
        self.almanac.stop()
        request = almanac.spec(scheduler_hints=dict(self.rebuild), force_hosts=['a'], force_nodes=['a'])
        self.assertEqual(['a'], self.filtered(request, hosts=self.hosts[:1]))
        self.assertEqual([], self.almanac.asked)

    def test_is_not_what_a_tenant_says(self):
        self.almanac.answer = self.almanac.only('b')
        self.assertEqual(['b'], self.filtered(almanac.spec(scheduler_hints=dict(self.rebuild))))


class Weigher(TestCase):
    def test_an_aggregate_sets_the_multiplier(self):
        hosts = [almanac.host('a', almanac_weight_multiplier='-2'), almanac.host('b'), almanac.host('c', almanac_weight_multiplier='x')]
        almanac.CONF.set_override('almanac_weight_multiplier', 3.0, group='almanac')
        request = almanac.spec()
        self.filtered(request, hosts=hosts)
        self.assertEqual([('c', 297.0), ('b', 294.0), ('a', -194.0)], self.weighed(request, hosts=hosts))

    def test_prefers_none_without_an_answer(self):
        self.assertEqual([('a', 0.0), ('b', 0.0), ('c', 0.0)], self.weighed(almanac.spec()))


class Refusal(TestCase):
    def test_the_tenant_is_told_once_nothing_is_claimed(self):
        self.almanac.answer = self.almanac.only(refusal='the project has no reservation x, or it is over')
        self.assertEqual('No valid host was found. The project has no reservation x, or it is over.', self.refused(almanac.spec()))
        self.assertEqual([], self.filtered(almanac.spec(), index=1))

    def test_others_are_not_told_of_reservations(self):
        self.almanac.answer = self.almanac.only()
        self.assertEqual([], self.filtered(almanac.spec()))


def about(**changes):
    def give(question):
        body = {'hosts': question['hosts'], 'refused': {}, 'weights': {host: 1 for host in question['hosts']}}
        body.update(changes)
        return 200, {name: value for name, value in body.items() if value is not ...}
    return give


BAD = {
    'no JSON': lambda _: (200, b'<html>'),
    'nothing': lambda _: (200, b''),
    'bytes': lambda _: (200, b'\xff\xfe\x00'),
    'depth': lambda _: (200, b'[' * 100000),
    'a list': lambda _: (200, []),
    'null': lambda _: (200, None),
    'an empty object': lambda _: (200, {}),
    'no hosts': about(hosts=...),
    'hosts are one': about(hosts='a'),
    'hosts are numbers': about(hosts=[1, 2, 3]),
    'other hosts': about(hosts=['a', 'b', 'c', 'd']),
    'a host is missing': about(hosts=['a', 'b']),
    'a host is refused, too': about(refused={'a': 'x'}),
    'refused is a list': about(refused=['a']),
    'a reason is a number': about(hosts=['b', 'c'], refused={'a': 1}),
    'no weights': about(weights=...),
    'a weight is missing': about(weights={'a': 1, 'b': 1}),
    'a weight is a text': about(weights={'a': '1', 'b': 1, 'c': 1}),
    'a weight is true': about(weights={'a': True, 'b': 1, 'c': 1}),
    'a weight is no number': about(weights={'a': float('nan'), 'b': 1, 'c': 1}),
    'a weight is infinite': about(weights={'a': float('inf'), 'b': 1, 'c': 1}),
    'a weight is beyond numbers': lambda _: (200, b'{"hosts": ["a", "b", "c"], "refused": {}, "weights": {"a": 1%s, "b": 1, "c": 1}}' % (b'0' * 400)),
    'the refusal is a list': about(refusal=[]),
    'an error': lambda _: (500, {'error': {'message': 'x'}}),
    'not allowed': lambda _: (403, {'error': {'message': 'x'}}),
    'not known': lambda _: (401, b''),
    'moved': lambda _: (302, b''),
    'a good body of another status': lambda q: (203, almanac.Almanac.open(q)[1]),
    'an error that is none': lambda _: (400, b'{"error": [1]}'),
}


class FailClosed(TestCase):
    sentence = 'No valid host was found. The reservations cannot be looked up now; try again later.'

    def test_is_the_default(self):
        self.assertFalse(almanac.CONF.almanac.fail_open)

    def test_no_bad_answer_lets_a_host_pass(self):
        for name, bad in BAD.items():
            with self.subTest(name):
                self.almanac.answer = bad
                request = almanac.spec()
                self.assertEqual(self.sentence, self.refused(request))
                self.assertEqual([('a', 0.0), ('b', 0.0), ('c', 0.0)], self.weighed(request))
                self.assertEqual([], self.filtered(almanac.spec(), index=1))

    def test_stopped(self):
        self.almanac.stop()
        self.assertEqual(self.sentence, self.refused(almanac.spec()))

    def test_an_error_of_the_plugin_itself(self):
        self.assertEqual(self.sentence, self.refused(almanac.spec(flavor=objects.Flavor(extra_specs={})), hosts=[object()]))

    def test_recovers(self):
        request = almanac.spec()
        self.almanac.answer = lambda _: (503, b'')
        self.refused(request)
        self.almanac.answer = self.almanac.open
        self.assertEqual(ABC, self.filtered(almanac.spec()))


class Slow(TestCase):
    options = {'timeout': 1}

    def test_no_longer_than_the_time_out(self):
        for name, slow in {'never': self.almanac.never, 'drop by drop': self.drops}.items():
            with self.subTest(name):
                self.almanac.answer = slow
                begun = time.monotonic()
                self.refused(almanac.spec())
                self.assertLess(time.monotonic() - begun, 3)

    def test_the_instances_after_do_not_wait_again(self):
        almanac.CONF.set_override('fail_open', True, group='almanac')
        self.almanac.answer = self.almanac.never
        request = almanac.spec(num_instances=3)
        begun = time.monotonic()
        for index in range(3):
            self.assertEqual(ABC, self.filtered(request, index=index))
        self.assertLess(time.monotonic() - begun, 3)
        self.assertEqual(1, len(self.almanac.asked))

    def drops(self, _question):
        def drop():
            while not self.almanac.stopped.wait(0.3):
                yield b' '
        return 200, drop()


class FailOpen(TestCase):
    options = {'fail_open': True}

    def setUp(self):
        super().setUp()
        self.almanac.answer = lambda _: (503, b'')
        self.hosts = [almanac.host(name) for name in ('a', 'b', 'c', 'e')]
        almanac.aggregates(b=RESERVED, c=OWN, e={'ssd': 'true'})

    def test_the_fence_stays_closed(self):
        for name, bad in BAD.items():
            with self.subTest(name):
                self.almanac.answer = bad
                self.assertEqual(['a', 'e'], self.filtered(almanac.spec()))

    def test_nobody_is_let_in_by_a_hint(self):
        for hint in ([almanac.RESERVATION], [], ['x', 'y']):
            with self.subTest(hint=hint):
                self.assertIn('try again later', self.refused(almanac.spec(scheduler_hints={'reservation': hint})))

    def test_a_flavor_leads_into_its_reservation_only(self):
        self.assertEqual(['c'], self.filtered(almanac.spec(extra_specs={'almanac:reservation': almanac.RESERVATION})))
        self.refused(almanac.spec(extra_specs={'almanac:reservation': 'other'}))

    def test_an_error_of_the_plugin_itself(self):
        self.refused(almanac.spec(), hosts=[object()])


class Configuration(TestCase):
    def test_is_refused_at_the_start(self):
        for options, want in (({'auth_type': None}, 'auth_type'), ({'timeout': 0}, 'timeout'), ({'valid_interfaces': ['x']}, 'valid_interfaces')):
            with self.subTest(options):
                almanac.CONF.reset()
                almanac.configure(self.almanac.url, **options)
                with self.assertRaisesRegex(Exception, want):
                    almanac_nova.AlmanacFilter()

    def test_nova_loads_both_by_their_names(self):
        self.assertEqual([almanac_nova.AlmanacFilter], filters.HostFilterHandler().get_matching_classes(['almanac_nova.AlmanacFilter']))
        self.assertEqual([almanac_nova.AlmanacWeigher], weights.HostWeightHandler().get_matching_classes(['almanac_nova.AlmanacWeigher']))


class Messages(unittest.TestCase):
    def test_of_errors(self):
        self.assertEqual('no', answer.message(b'{"error": {"message": "no"}}'))
        for raw in (b'', b'x', b'[]', b'{"error": 1}', b'{"error": {"message": 1}}', b'{}', b'\xff'):
            self.assertEqual('', answer.message(raw))


if __name__ == '__main__':
    unittest.main()
