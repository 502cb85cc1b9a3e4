#!/usr/bin/python3
"""Creates Nova's tables and cells with nova-manage, which it loads once for all steps.

nova_schema.py OPTION...    for nova-manage
"""
import os
import sys

from nova.cmd import manage

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
nova_manage('cell_v2', 'create_cell', '--name', 'cell1', '--transport-url', SERVER + '/{path}',
            '--database_connection', SERVER + '/{path}?{query}')
nova_manage('db', 'sync')
