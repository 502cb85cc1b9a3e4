# SPDX-License-Identifier: Apache-2.0
"""A peer of pkg/oslo: the real oslo.messaging over RabbitMQ.

peer.py serve URL            an RPC server on exchange almanac, topic almanac.py, server one, version 1.2;
                             every method it is asked to remember is printed as a line
peer.py listen URL           a notification listener; prints each notification as a line of JSON
peer.py call URL             calls topic almanac.go, prints the answers as a line of JSON
peer.py notify URL           sends one notification

Prints "ready" once it can be talked to; ends when its input does.
"""
import json
import logging
import sys
import time

from oslo_config import cfg
from oslo_context.context import RequestContext
import oslo_messaging as messaging

logging.basicConfig(level=logging.ERROR, stream=sys.stderr)


def say(line):
    sys.stdout.write(line + "\n")  # as a whole: several threads say something
    sys.stdout.flush()


class Endpoint(object):
    target = messaging.Target(version="1.2")

    def double(self, ctxt, n):
        return {"n": 2 * n, "request_id": ctxt.get("request_id")}

    @messaging.expected_exceptions(KeyError)
    def fail(self, ctxt):
        raise KeyError("no such thing")

    def slow(self, ctxt, seconds):
        time.sleep(seconds)
        return "slow"

    def remember(self, ctxt, what):
        say("remember " + what)


class Notes(object):
    def info(self, ctxt, publisher_id, event_type, payload, metadata):
        say(json.dumps({"publisher_id": publisher_id, "event_type": event_type, "payload": payload,
                        "message_id": metadata["message_id"], "request_id": ctxt.get("request_id")}))


def serve(conf, url):
    transport = messaging.get_rpc_transport(conf, url)
    target = messaging.Target(exchange="almanac", topic="almanac.py", server="one")
    server = messaging.get_rpc_server(transport, target, [Endpoint()], executor="threading")
    server.start()
    time.sleep(1)  # its consumers are declared by a thread of its own
    say("ready")
    sys.stdin.read()
    server.stop()


def listen(conf, url):
    transport = messaging.get_notification_transport(conf, url)
    target = messaging.Target(exchange="almanac", topic="notifications")
    listener = messaging.get_notification_listener(transport, [target], [Notes()], executor="threading")
    say("ready")  # first, since what waits in the queue is printed at once
    listener.start()
    sys.stdin.read()
    listener.stop()


def call(conf, url):
    transport = messaging.get_rpc_transport(conf, url)
    # before oslo.messaging 14.0.1 clients are made by the class itself
    new_client = getattr(messaging, "get_rpc_client", messaging.RPCClient)
    client = new_client(transport, messaging.Target(exchange="almanac", topic="almanac.go", version="1.0"))
    context = {"request_id": "req-py"}
    out = {"double": client.call(context, "double", n=21)}
    for name, version, method in (("fault", "1.0", "refuse"), ("missing", "1.0", "nothing"), ("late", "1.9", "double")):
        try:
            client.prepare(version=version).call(context, method)
        except Exception as e:
            out[name] = [type(e).__name__, getattr(e, "exc_type", None), getattr(e, "value", None)]
    # Longer than the caller waits without a sign of life.
    out["slow"] = client.prepare(timeout=120, call_monitor_timeout=2).call(context, "slow")
    client.cast(context, "remember", what="cast")
    client.prepare(fanout=True).cast(context, "remember", what="fanout")
    say(json.dumps(out))
    transport.cleanup()


def notify(conf, url):
    transport = messaging.get_notification_transport(conf, url)
    notifier = messaging.Notifier(transport, publisher_id="py.host", driver="messagingv2", topics=["notifications"])
    # oslo.messaging 16 drops a context that is a dict
    context = RequestContext(request_id="req-py", auth_token="secret")
    notifier.info(context, "instance.create.end", {"name": "<ä>"})
    say("ready")
    transport.cleanup()


if __name__ == "__main__":
    settings = cfg.CONF
    settings([])
    messaging.set_transport_defaults("almanac")
    {"serve": serve, "listen": listen, "call": call, "notify": notify}[sys.argv[1]](settings, sys.argv[2])
