#!/bin/sh
# Patroni runs this as: on-role-change.sh on_role_change ROLE CLUSTER. After a promotion, renews the
# epoch if a node has shown a revision that this server lacks.
case "$2" in master | primary | promoted) ;; *) exit 0 ;; esac
[ -s "$PRICES_NOTE" ] || exit 0
[ -z "$PRICES_PASSWORD" ] || export PGPASSWORD="$PRICES_PASSWORD"
had=$(cat "$PRICES_NOTE")
rm -f "$PRICES_NOTE"
# The promotion may still be under way.
for _ in $(seq 60); do
  [ "$(psql "$PRICES_LOCAL_URL" -XAtc 'select pg_is_in_recovery()')" = f ] && break
  sleep 0.5
done
cd "$(dirname "$0")/../.." || exit 1
# shellcheck disable=SC2086 # PRICES_METRICS is a list of addresses.
DATABASE_URL=$PRICES_LOCAL_URL ./prices db renew-epoch --yes --if-lost-after "$had" $PRICES_METRICS
