#!/bin/sh
# nightly.sh DAYS STATES OPTION...: keeps a regression over all tables DAYS/*.csv, of which only new ones are
# read. The options are those of `qrtool solve` for the first table: --response y --intercept. For cron:
#
#     15 0 * * *  nightly.sh /data/days /data/states --response y --intercept
#
# STATES/2026-12-01.h5 is the regression over all tables up to DAYS/2026-12-01.csv. It is there or not, whatever
# ends the job, so that no table counts twice, and the next job goes on where this one ended. Only the last
# state is needed.
set -eu
days=$1 states=$2
shift 2
last=
for table in "$days"/*.csv; do
  state=$states/$(basename "$table" .csv).h5
  if [ ! -e "$state" ]; then
    if [ -z "$last" ]; then
      qrtool solve "$table" "$state" --state --quiet "$@"
    else
      qrtool append "$last" "$table" "$state" --quiet
    fi
  fi
  last=$state
done
