# SPDX-License-Identifier: Apache-2.0
# MariaDB: user almanac, password almanac, all rights.
#
# The private servers of tests also use mariadb.cnf and mariadb-template, an
# initialized data folder.

mariadb_packages="mariadb-server galera-4 rsync lsof"
mariadb_needs=""

# mariadbd refuses to run as root
if [ "$(id -u)" = 0 ]; then MARIADB_USER=mysql; else MARIADB_USER=$(id -un); fi

mariadb_up() {
  mariadb_settings
  [ -d "$LAB/mariadb-template" ] || mariadb_template
  [ -d "$LAB/mariadb" ] || cp -a --sparse=always "$LAB/mariadb-template" "$LAB/mariadb"
  mariadb_start
  publish mariadb "$(mariadb_port)"
}

# A starting mariadbd removes the temporary tables in its tmpdir, and another server
# that uses one of them crashes (sql/sql_base.cc mysql_rm_tmp_tables). So each server
# has a tmpdir of its own.
mariadb_start() {
  start mariadb mariadbd --defaults-file="$LAB/mariadb.cnf" --user="$MARIADB_USER" \
    --datadir="$LAB/mariadb" --tmpdir="$LAB/mariadb" --port="$(mariadb_port)" \
    --socket="$LAB/mariadb/lab.sock" --pid-file="$LAB/mariadb/lab.pid"
  wait_for mariadb mariadb_sql 'SELECT 1'
}

mariadb_port() { echo $((BASE + 0)); }

# mariadb_url DATABASE [CHARSET] prints the URL for SQLAlchemy.
mariadb_url() { echo "mysql+pymysql://almanac:almanac@127.0.0.1:$(mariadb_port)/$1?charset=${2:-utf8}"; }

# mariadb_new DATABASE [CHARSET] creates an empty database, in place of an
# incomplete one.
mariadb_new() { mariadb_sql "DROP DATABASE IF EXISTS $1; CREATE DATABASE $1 CHARACTER SET ${2:-utf8mb3}"; }

# mariadb_sql STATEMENTS
mariadb_sql() { mariadb --no-defaults -h 127.0.0.1 -P "$(mariadb_port)" -u almanac -palmanac -N -e "$1"; }

# A commit is on disk before it is acknowledged, as in production: tests kill
# servers and check that acknowledged commits are there.
mariadb_settings() {
  written "$LAB/mariadb.cnf" <<E
[mariadbd]
bind-address = 127.0.0.1
skip-name-resolve
skip-log-bin
max_connections = 1000
performance_schema = OFF
character_set_server = utf8mb4
collation_server = utf8mb4_general_ci
innodb_flush_log_at_trx_commit = 1
innodb_buffer_pool_size = 128M
innodb_log_file_size = 32M
E
  chmod 644 "$LAB/mariadb.cnf"
}

mariadb_template() {
  local making=$LAB/mariadb-making sql=$LAB/mariadb-users.sql
  rm -rf "$making"
  install -d -m 700 -o "$MARIADB_USER" "$making"
  # the flush makes the initializing server read the grant tables
  cat >"$sql" <<E
FLUSH PRIVILEGES;
CREATE USER almanac@'127.0.0.1' IDENTIFIED BY 'almanac';
GRANT ALL ON *.* TO almanac@'127.0.0.1' WITH GRANT OPTION;
E
  quietly mariadb-install mariadb-install-db --defaults-file="$LAB/mariadb.cnf" --user="$MARIADB_USER" \
    --datadir="$making" --skip-test-db --skip-name-resolve --extra-file="$sql"
  rm "$sql"
  mv "$making" "$LAB/mariadb-template"
}
