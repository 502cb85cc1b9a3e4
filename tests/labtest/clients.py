# SPDX-License-Identifier: Apache-2.0
"""Runs commands of OpenStack's clients. Each is a process of its own; what it imports is imported once for all.

Every line of standard input is a command with its arguments, as a JSON list; NAME=VALUE before it sets a variable.
Every line of standard output is {"exit": status, "out": text, "err": text}.
"""
import contextlib
import importlib
import json
import logging
import os
import sys
import tempfile

SHELLS = {'openstack': 'openstackclient.shell', 'blazar': 'blazarclient.shell'}


def load():
    """Imports what commands need: the help of a command needs most of it."""
    for name in SHELLS.values():
        importlib.import_module(name)
    with open(os.devnull, 'w') as nowhere, contextlib.redirect_stdout(nowhere), contextlib.suppress(SystemExit):
        importlib.import_module(SHELLS['openstack']).main(['reservation', 'lease', 'list', '--help'])
    logging.getLogger().handlers.clear()  # each command adds its own


def run(variables, client, *arguments):
    files = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for number, file in enumerate(files, 1):
                os.dup2(file.fileno(), number)
            os.environ.update(variables)
            sys.stdin = open(os.devnull)
            sys.argv = [client, *arguments]
            status = importlib.import_module(SHELLS[client]).main(sys.argv[1:]) or 0
        except SystemExit as end:
            status = end.code or 0
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(status if isinstance(status, int) else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for file in files:
        file.seek(0)
        texts.append(file.read().decode())
        file.close()
    return {'exit': status, 'out': texts[0], 'err': texts[1]}


sys.argv = ['openstack']  # which the messages of the clients begin with
load()
for line in sys.stdin:
    command, variables = json.loads(line), {}
    while '=' in command[0]:
        name, value = command.pop(0).split('=', 1)
        variables[name] = value
    print(json.dumps(run(variables, *command)), flush=True)
