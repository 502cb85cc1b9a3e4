# SPDX-License-Identifier: Apache-2.0
# Keystone under uwsgi, with the projects, users and catalog of identity.py.
# Every password is `lab`. $LAB/openrc.USER is the environment of a user for
# people.

keystone_packages="curl python3-blazarclient python3-keystone python3-openstackclient python3-pymysql uwsgi-core uwsgi-plugin-python3"
keystone_needs="mariadb"

keystone_port() { echo $((BASE + 5)); }
keystone_url() { echo "http://127.0.0.1:$(keystone_port)/v3"; }

keystone_up() {
  local catalog
  catalog=$(keystone_catalog)
  keystone_settings
  keystone_openrc "$(keystone_url)"
  await mariadb
  [ -e "$LAB/keystone/schema" ] || keystone_schema
  # a lab that is started again may have other ports, and so another catalog
  if [ "$(cat "$LAB/keystone/catalog" 2>/dev/null)" = "$catalog" ]; then
    keystone_start
  else
    keystone_launch
    keystone_bootstrap "$(keystone_url)" # while the service loads
    keystone_start
    quietly keystone-identity /usr/bin/python3 -B "$HERE/identity.py" "$(keystone_url)" "$PASSWORD" $catalog
    echo "$catalog" >"$LAB/keystone/catalog"
  fi
  publish keystone "$(keystone_port)"
}

keystone_start() {
  keystone_launch
  wait_for keystone answers "$(keystone_port)"
}

keystone_launch() {
  start_wsgi keystone "$(keystone_port)" 1 "$(module keystone/wsgi/api.py || echo /usr/bin/keystone-wsgi-public)" \
    OS_KEYSTONE_CONFIG_FILES="$LAB/keystone/keystone.conf"
}

# keystone_catalog prints the URLs of Keystone and the other services, started or
# not.
keystone_catalog() {
  echo "identity=$(keystone_url)"
  echo "compute=http://127.0.0.1:$(nova_port)/v2.1"
  echo "placement=http://127.0.0.1:$(placement_port)"
  echo "image=http://127.0.0.1:$(glance_port)"
  echo "network=http://127.0.0.1:$(neutron_port)"
  echo "baremetal=http://127.0.0.1:$(ironic_port)"
}

# keystone_authtoken USER prints the section with which a service validates tokens.
keystone_authtoken() {
  keystone_client keystone_authtoken "$1"
  echo "www_authenticate_uri = $(keystone_url)"
  echo "service_token_roles_required = true"
}

# keystone_client SECTION USER prints the section with which a service gets a token.
keystone_client() {
  cat <<E
[$1]
auth_type = password
auth_url = $(keystone_url)
username = $2
password = $PASSWORD
project_name = service
user_domain_id = default
project_domain_id = default
region_name = RegionOne
E
}

# cloud VERB...: see cloud.py
cloud() { /usr/bin/python3 -B "$HERE/cloud.py" "$(keystone_url)" "$PASSWORD" "$@"; }

keystone_manage() {
  quietly keystone-manage keystone-manage --config-file "$LAB/keystone/keystone.conf" "$@"
}

# keystone_schema also replaces a schema that is not complete.
keystone_schema() {
  mariadb_new keystone utf8mb4
  rm -f "$LAB/keystone/catalog"
  keystone_manage db_sync
  touch "$LAB/keystone/schema"
}

# keystone_bootstrap URL
keystone_bootstrap() {
  keystone_manage bootstrap --bootstrap-password "$PASSWORD" --bootstrap-region-id RegionOne \
    --bootstrap-admin-url "$1" --bootstrap-internal-url "$1" --bootstrap-public-url "$1"
}

keystone_settings() {
  local kind key
  (umask 077; mkdir -p "$LAB"/keystone/{fernet,credential})
  # Hashes of passwords are cheap: they protect nothing here. A token costs a sixth with the cache
  # of one process, which learns of every change because it makes every change.
  written "$LAB/keystone/keystone.conf" <<E
[DEFAULT]
use_stderr = true
[database]
connection = $(mariadb_url keystone utf8mb4)
[cache]
backend = oslo_cache.dict
[token]
provider = fernet
expiration = 86400
[fernet_tokens]
key_repository = $LAB/keystone/fernet
[fernet_receipts]
key_repository = $LAB/keystone/fernet
[credential]
key_repository = $LAB/keystone/credential
[identity]
password_hash_rounds = 4
max_password_length = 72
E
  for kind in fernet credential; do
    for key in 0 1; do
      [ -s "$LAB/keystone/$kind/$key" ] || fernet_key >"$LAB/keystone/$kind/$key"
    done
  done
}

# fernet_key prints 32 random bytes in URL-safe base64.
fernet_key() { head -c 32 /dev/urandom | base64 | tr '+/' '-_'; }

# keystone_openrc URL
keystone_openrc() {
  local user project
  for user in admin:admin demo:demo demo2:demo2 reader:demo almanac:service; do
    project=${user#*:} user=${user%:*}
    written "$LAB/openrc.$user" <<E
export OS_AUTH_URL=$1 OS_REGION_NAME=RegionOne OS_IDENTITY_API_VERSION=3
export OS_COMPUTE_API_VERSION=2.90 OS_PLACEMENT_API_VERSION=1.39
export OS_USERNAME=$user OS_PASSWORD=$PASSWORD OS_PROJECT_NAME=$project
export OS_USER_DOMAIN_ID=default OS_PROJECT_DOMAIN_ID=default
export PATH=$LAB/bin:\$PATH
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy
E
    chmod 600 "$LAB/openrc.$user"
  done
}
