#!/bin/sh
# Patroni runs this before it promotes this server. Notes the newest revision for on-role-change.sh,
# or 0 if it cannot be read: the epoch is then renewed. It always succeeds: a failure would prevent
# the promotion.
[ -z "$PRICES_PASSWORD" ] || export PGPASSWORD="$PRICES_PASSWORD"
psql "$PRICES_LOCAL_URL" -XAtc 'select coalesce(max(number), 0) from revision' \
  > "$PRICES_NOTE.new" 2>/dev/null || echo 0 > "$PRICES_NOTE.new"
mv "$PRICES_NOTE.new" "$PRICES_NOTE"
exit 0
