#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Creates Nova's tables and cells with nova-manage, which it loads once for all steps.

nova_schema.py CELLS FOLDER OPTION...    the options are for nova-manage

One cell is on the virtual host of Nova's API. Of several, each is on the one of its name, and FOLDER has a file of settings
with its database.
"""
import os
import sys

from nova.cmd import manage

CELLS, FOLDER = int(sys.argv.pop(1)), sys.argv.pop(1)

# The cells read host, port and password from the configuration: the lab may start again on other ports.
SERVER = '{scheme}://{username}:{password}@{hostname}:{port}'


def nova_manage(*command):
    child = os.fork()
    if child == 0:
        sys.argv += command
        os._exit(manage.main() or 0)
    if os.waitpid(child, 0)[1]:
        raise SystemExit('nova-manage %s failed' % ' '.join(command))


nova_manage('api_db', 'sync')
nova_manage('cell_v2', 'map_cell0', '--database_connection', SERVER + '/nova_cell0?{query}')
for cell in ['cell%d' % number for number in range(1, CELLS + 1)]:
    nova_manage('cell_v2', 'create_cell', '--name', cell, '--transport-url', SERVER + '/' + ('{path}' if CELLS == 1 else cell),
                '--database_connection', SERVER + '/nova_%s?{query}' % cell)
    if CELLS > 1:
        nova_manage('--config-file', '%s/%s-control.conf' % (FOLDER, cell), 'db', 'sync', '--local_cell')
nova_manage('db', 'sync')
