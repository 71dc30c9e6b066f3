#!/bin/sh
# submit.sh N -- starts the N tasks of a round of object-store.sh as an array job of AWS Batch; job-definition.json is what a task runs, with
# scene and options written in it. An index begins at 0 and a task at 1.
#
#     aws batch register-job-definition --cli-input-json file://job-definition.json
#     cd /data && STORE=s3://bucket/city SUBMIT='.../submit.sh "$1"' object-store.sh lead city --devices cpu
#
# The image has object-store.sh, the AWS CLI and kiln in its PATH. QUEUE=kiln: the job queue.
set -eu
case $1 in *[!0-9]* | '') echo "Usage: $0 N" >&2; exit 2 ;; esac
set -- "$1" --job-name kiln --job-queue "${QUEUE:-kiln}" --job-definition kiln
[ "$1" -lt 2 ] || set -- "$@" --array-properties "size=$1" # of one there are no arrays
shift
exec aws batch submit-job "$@"
