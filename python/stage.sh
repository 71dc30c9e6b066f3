#!/bin/bash
# A stage's program in a wheel, which has no links: kiln, called by this file's name.
exec -a "${0##*/}" "$(dirname "$(readlink -f "$0")")/kiln" "$@"
