# Keystone under uwsgi, with the projects and users of identity.py; every
# password is `lab`. $LAB/openrc.USER is each one's environment.

keystone_packages="curl python3-keystone python3-openstackclient python3-pymysql uwsgi-core uwsgi-plugin-python3"
keystone_needs="mariadb"

keystone_up() {
  local port=$((BASE + 5)) url
  url=http://127.0.0.1:$port/v3
  keystone_settings
  keystone_openrc "$url"
  [ -e "$LAB/keystone/schema" ] || keystone_schema
  keystone_start "$port"
  # a lab that came back on other ports has another catalogue
  if [ "$(cat "$LAB/keystone/url" 2>/dev/null)" = "$url" ]; then
    keystone_answers "$url"
  else
    keystone_bootstrap "$url" # while the service loads
    keystone_answers "$url"
    quietly keystone-identity /usr/bin/python3 "$HERE/identity.py" "$url" "$PASSWORD"
    echo "$url" >"$LAB/keystone/url"
  fi
  publish keystone "$port"
}

# keystone_start PORT
keystone_start() {
  start keystone env OS_KEYSTONE_CONFIG_FILES="$LAB/keystone/keystone.conf" \
    uwsgi --plugins python3 --master --lazy-apps --need-app --die-on-term --enable-threads \
    --single-interpreter --buffer-size 65535 --disable-logging --add-header "Connection: close" \
    --http-socket "127.0.0.1:$1" --processes 2 --wsgi-file /usr/bin/keystone-wsgi-public
}

# keystone_answers URL
keystone_answers() { wait_for keystone 60 curl -sf --max-time 10 "$1"; }

keystone_manage() {
  quietly keystone-manage keystone-manage --config-file "$LAB/keystone/keystone.conf" "$@"
}

# A schema that was made by half is made anew.
keystone_schema() {
  mariadb_sql "DROP DATABASE IF EXISTS keystone; CREATE DATABASE keystone"
  rm -f "$LAB/keystone/url"
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
  # cheap password hashes: they are slow on purpose, and here nobody guesses
  cat >"$LAB/keystone/keystone.conf" <<E
[DEFAULT]
use_stderr = true
[database]
connection = mysql+pymysql://almanac:almanac@127.0.0.1:$(mariadb_port)/keystone?charset=utf8mb4
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
E
  for kind in fernet credential; do
    for key in 0 1; do
      [ -s "$LAB/keystone/$kind/$key" ] || fernet_key >"$LAB/keystone/$kind/$key"
    done
  done
}

# fernet_key: 32 random bytes in URL-safe base64
fernet_key() { head -c 32 /dev/urandom | base64 | tr '+/' '-_'; }

# keystone_openrc URL
keystone_openrc() {
  local user project
  for user in admin:admin demo:demo demo2:demo2 reader:demo almanac:service; do
    project=${user#*:} user=${user%:*}
    cat >"$LAB/openrc.$user" <<E
export OS_AUTH_URL=$1 OS_REGION_NAME=RegionOne OS_IDENTITY_API_VERSION=3
export OS_USERNAME=$user OS_PASSWORD=$PASSWORD OS_PROJECT_NAME=$project
export OS_USER_DOMAIN_ID=default OS_PROJECT_DOMAIN_ID=default
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy
E
    chmod 600 "$LAB/openrc.$user"
  done
}
