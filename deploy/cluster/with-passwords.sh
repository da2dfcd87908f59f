#!/bin/sh
# Runs a command of Patroni with the passwords and addresses of a server of the Compose cluster:
#   with-passwords.sh patronictl -c /app/deploy/cluster/patroni.yml list
set -e
name=$(hostname)
export PATRONI_NAME="$name" PATRONI_POSTGRESQL_CONNECT_ADDRESS="$name:5432"
# A name of its network for Patroni only, so that the REST API listens on no other.
rest=patroni${name#postgres}:8008
export PATRONI_RESTAPI_LISTEN="$rest" PATRONI_RESTAPI_CONNECT_ADDRESS="$rest"
PATRONI_RESTAPI_PASSWORD=$(cat /secrets/patroni/password)
PATRONI_ETCD3_PASSWORD=$(cat /secrets/etcd/password)
PATRONI_SUPERUSER_PASSWORD=$(cat /secrets/database/password)
PATRONI_REPLICATION_PASSWORD=$(cat /secrets/replication/password)
export PATRONI_RESTAPI_PASSWORD PATRONI_ETCD3_PASSWORD
export PATRONI_SUPERUSER_PASSWORD PATRONI_REPLICATION_PASSWORD
exec "$@"
