# SPDX-License-Identifier: Apache-2.0
# Horizon with Blazar's dashboard, for the users of Keystone. Whoever signs in has a
# panel for leases, whether or not the catalog has a service `reservation`. No release
# before Epoxy has packages.

horizon_packages="curl openstack-dashboard python3-blazar-dashboard uwsgi-core uwsgi-plugin-python3"
horizon_needs="keystone"

horizon_port() { echo $((BASE + 13)); }

horizon_up() {
  [ "$RELEASE" != zed ] || die "Debian 12 has no package of Blazar's dashboard; RELEASE is epoxy or newest"
  horizon_settings
  horizon_start
  publish horizon "$(horizon_port)"
}

# Sessions are in the memory of the one process. Debian's packages have put the files
# of the pages into one folder.
horizon_start() {
  start_wsgi horizon "$(horizon_port)" 1 /usr/share/openstack-dashboard/wsgi.py PYTHONPATH="$LAB/horizon" \
    UWSGI_THREADS=4 UWSGI_STATIC_MAP=/static=/var/lib/openstack-dashboard/static
  wait_for horizon answers "$(horizon_port)"
}

# horizon_settings writes the module local.local_settings, which stands before Debian's.
horizon_settings() {
  mkdir -p "$LAB/horizon/local"
  touch "$LAB/horizon/local/__init__.py"
  written "$LAB/horizon/local/local_settings.py" <<E
ALLOWED_HOSTS = ['127.0.0.1']
OPENSTACK_KEYSTONE_URL = '$(keystone_url)'
SECRET_KEY = '$PASSWORD'
E
}
