#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""nova-compute for several hosts in one process, each with its own service, queue, provider and guests.

computes.py FIRST LAST [ARGUMENT...]    hosts cmp-FIRST to cmp-LAST; the rest is for Nova

It starts like nova.cmd.compute, with a service for each host in one process, like Nova's functional tests. Only CONF.host
is the first host's for all of them: it appears as the publisher of notifications, and in faults.
"""
import os
import shlex
import signal
import sys
import tempfile
import uuid

# oslo.messaging names queues after the program and the host if it uses its queue manager; two processes of one name
# would share a queue for replies.
sys.argv[0] = 'computes-' + sys.argv[1]

from nova.cmd import compute as _  # noqa: F401, patches the interpreter and must be first
import nova.conf
import nova.db.main.api
import os_vif
from nova import config, objects, service, utils
from nova.compute import manager
from nova.compute import power_state
from nova.compute import rpcapi as compute
from nova.conductor import rpcapi as conductor
from nova.image import glance
from nova.objects import base
from nova.virt import fake
from oslo_log import log
from oslo_privsep import priv_context


class LabDriver(fake.MediumFakeDriver):
    """10 VCPU, 8 GiB and 1028 GB. Guests outlive the process, as on a hypervisor, and can be live-migrated.

    The metadata fails_on of a guest names hosts, separated by spaces, on which it cannot be built. The driver caches
    an image with the property lab_cached: it fetches the image from Glance but does not keep it. It refuses other
    images, like Nova's own fake driver.
    """

    def __init__(self, virtapi, read_only=False):
        super().__init__(virtapi, read_only)
        self.fetched = set()

    def cache_image(self, context, image_id):
        images = glance.API()
        if 'lab_cached' not in images.get(context, image_id)['properties']:
            return super().cache_image(context, image_id)
        if image_id in self.fetched:
            return False
        with tempfile.NamedTemporaryFile() as file:
            images.download(context, image_id, dest_path=file.name)
        self.fetched.add(image_id)
        return True

    def spawn(self, context, instance, *args, **kwargs):
        if instance.host in instance.metadata.get('fails_on', '').split():
            raise RuntimeError('%s must not be built here' % instance.uuid)
        super().spawn(context, instance, *args, **kwargs)

    def plug_vifs(self, instance, network_info):
        # Nova calls this for each instance of the host when nova-compute starts
        if instance.uuid not in self.instances:
            self.spawn(None, instance, None, None, None, None,
                       power_on=instance.power_state != power_state.SHUTDOWN)

    def get_nodenames_by_uuid(self, refresh=False):
        return {node_uuid(name): name for name in self.get_available_nodes(refresh)}

    def get_available_resource(self, nodename):
        # since Antelope, Nova's own fake driver draws another UUID in each process
        return dict(super().get_available_resource(nodename), uuid=node_uuid(nodename))

    def get_host_uptime(self):
        return 'up'

    def post_live_migration(self, context, instance, block_device_info, migrate_data=None):
        # runs on the host that the instance has left
        self.destroy(context, instance, None, block_device_info)


class LabService(service.Service):
    """A nova-compute that is up when it has started: the lab forces the host down before."""

    def start(self):
        super().start()
        if self.service_ref.forced_down:
            self.service_ref.forced_down = False
            self.service_ref.save()


def node_uuid(name):
    """Returns the UUID of a node, which is kept in a file as a host keeps it: a host that is deleted from Nova needs a new
    one, since some releases of Nova do not map a host again whose UUID they know (bug 2085135).
    """
    path = os.path.join(nova.conf.CONF.state_path, name + '.compute_id')
    if not os.path.exists(path):
        with open(path + '.new', 'w') as file:
            file.write(str(uuid.uuid4()))
        os.rename(path + '.new', path)
    with open(path) as file:
        return file.read()


def main(first, last):
    # Since Antelope, a known host does not start without the file compute_id in state_path. The hosts here share
    # state_path, and each has a file of its own.
    if hasattr(manager.ComputeManager, '_ensure_existing_node_identity'):
        manager.ComputeManager._ensure_existing_node_identity = lambda *_: None
    fake.LabDriver = LabDriver  # Nova finds drivers only in nova.virt
    config.parse_args(sys.argv)
    log.setup(nova.conf.CONF, 'nova')
    priv_context.init(root_helper=shlex.split(utils.get_root_helper()))
    objects.register_all()
    os_vif.initialize()
    nova.db.main.api.DISABLE_DB_ACCESS = True
    base.NovaObject.indirection_api = conductor.ConductorAPI()
    objects.Service.enable_min_version_cache()
    running = [create_service('cmp-%03d' % number) for number in range(first, last + 1)]
    if greenlets():
        launch_in_greenlets(running)
    else:
        launch_in_threads(running)


def create_service(host):
    topics = {'topic': compute.RPC_TOPIC}
    if hasattr(compute, 'RPC_TOPIC_ALT'):
        topics['topic_alt'] = compute.RPC_TOPIC_ALT
    return LabService.create(host=host, binary='nova-compute', **topics)


def greenlets():
    """Tells whether Nova runs in eventlet's greenlets: the newest releases run in threads."""
    patcher = sys.modules.get('eventlet.patcher')
    return patcher is not None and patcher.is_monkey_patched('thread')


def launch_in_greenlets(running):
    from oslo_service import service as services
    from oslo_service import threadgroup
    launcher = services.ServiceLauncher(nova.conf.CONF, restart_method='mutate')
    # each service uses a thread of this pool while it runs; the default is 10
    launcher.services.tg = threadgroup.ThreadGroup(thread_pool_size=1000)
    for one in running:
        launcher.launch_service(one)
    launcher.wait()


def launch_in_threads(running):
    for one in running:
        one.start()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        signal.pause()


main(int(sys.argv.pop(1)), int(sys.argv.pop(1)))
