# SPDX-License-Identifier: Apache-2.0
"""Placement in this process, on an SQLite database in a folder, as the WSGI application that its packages start."""

import json
import logging
import os
import uuid

from oslo_config import cfg
from placement import conf, db_api, deploy
from webob import Request

logging.disable(logging.WARNING)


class Placement:
    """options are more lines of placement.conf."""

    def __init__(self, folder, options=""):
        file = os.path.join(folder, f"placement-{os.getpid()}.conf")
        with open(file, "w") as out:
            out.write(
                f"[placement_database]\nconnection = sqlite:///{folder}/placement.db\nsync_on_startup = true\n"
                f"[api]\nauth_strategy = noauth2\n{options}\n"
            )
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config([], project="placement", default_config_files=[file], default_config_dirs=[])
        db_api.configure(config)
        deploy.update_database(config)
        self.application = deploy.loadapp(config)

    def call(self, method, path, body=None):
        """Returns the status and the answer."""
        request = Request.blank(path, method=method)
        request.headers.update({"x-auth-token": "admin", "accept": "application/json", "openstack-api-version": "placement 1.38"})
        if body is not None:
            request.body = json.dumps(body).encode()
            request.content_type = "application/json"
        response = request.get_response(self.application)
        return response.status_int, response.json if response.body else None

    def provider(self, name, parent=None, vcpus=None):
        """Makes a provider, with as many VCPU if they are given."""
        body = {"name": name, "uuid": uuid_of(name)}
        if parent:
            body["parent_provider_uuid"] = uuid_of(parent)
        self.must("POST", "/resource_providers", body)
        if vcpus:
            body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": vcpus}}}
            self.must("PUT", f"/resource_providers/{uuid_of(name)}/inventories", body)
        NAMES[uuid_of(name)] = name

    def must(self, method, path, body):
        status, answer = self.call(method, path, body)
        if status >= 300:
            raise SystemExit(f"{method} {path}: {status} {answer}")

    def candidates(self, query):
        """Returns the VCPU of each candidate by the name of the provider, in Placement's order."""
        status, answer = self.call("GET", "/allocation_candidates?" + query)
        if status != 200:
            raise SystemExit(f"{query}: {status} {answer}")
        return [
            {NAMES[id]: a["resources"]["VCPU"] for id, a in sorted(r["allocations"].items(), key=lambda one: NAMES[one[0]])}
            for r in answer["allocation_requests"]
        ]

    def claim(self, vcpus):
        """Returns the status of a claim of a new consumer, of so many VCPU by the name of the provider."""
        allocations = {uuid_of(name): {"resources": {"VCPU": n}} for name, n in vcpus.items()}
        body = {
            "allocations": allocations,
            "project_id": uuid_of("project"),
            "user_id": uuid_of("user"),
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        return self.call("PUT", f"/allocations/{uuid.uuid4()}", body)[0]


NAMES = {}


def uuid_of(name):
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
