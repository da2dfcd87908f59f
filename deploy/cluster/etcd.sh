#!/bin/sh
# etcd for the Compose cluster. Every access needs the user root and the password of /secrets/etcd.
# The first start sets the password while etcd listens on loopback only.
set -e
home=/var/lib/postgresql
export ETCDCTL_API=3 ETCD_DATA_DIR=$home/etcd
if [ ! -e "$home/etcd-has-password" ]; then
  etcd --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 &
  until etcdctl endpoint health > /dev/null 2>&1; do sleep 0.2; done
  # An earlier start may have been killed at any of these lines.
  if ! etcdctl auth status 2>/dev/null | grep -q 'Authentication Status: true'; then
    etcdctl user add root --interactive=false < /secrets/etcd/password || true
    etcdctl auth enable
  fi
  kill $!
  wait $! || true
  touch "$home/etcd-has-password"
fi
exec etcd --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls http://etcd:2379
