#!/bin/bash
# examples/object-store.sh with the AWS CLI and an S3 server on loopback: the digest of a bake in one go, and what travels.
# The server is S3RVER (npm install s3rver: node_modules/.bin/s3rver), else moto_server (pip install moto[server]). AWS names another CLI.
# time-limit: 3000
. tests/e2e/lib.sh
unshare -m true 2>/dev/null || skip 'this machine allows no mount namespaces'
cli=$(command -v "${AWS:-aws}") && "$cli" --version >/dev/null 2>&1 || skip 'there is no AWS CLI (apt-get install awscli)'
if [ -n "${S3RVER:-}" ]; then
    serve() { node "$S3RVER" -a 127.0.0.1 -p "$port" -d "$KILN_TMP/buckets"; }
elif moto_server --help >/dev/null 2>&1; then
    serve() { moto_server -H 127.0.0.1 -p "$port"; }
else
    skip 'there is no S3 server (npm install s3rver and S3RVER=node_modules/.bin/s3rver, or pip install moto[server])'
fi
example=$PWD/examples/object-store.sh
cd "$KILN_TMP" || fail "cd"
mkdir here lead one
[ -n "${SCENE:-}" ] && cp -rL "$SCENE" lead/s || scene lead/s 5000 3 64x64
must 0 "$KILN_BIN/kiln" pipeline lead/s --out "$KILN_TMP/alone" --devices cpu
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])') || fail "port"
serve >server.log 2>&1 &
server=$!
at_exit 'kill $server 2>/dev/null'
# Debian 12's CLI takes the address as an option alone. Calls are noted here, because servers log as they like.
mkdir bin
cat >bin/aws <<E1
#!/bin/sh
echo "\$*" >>'$KILN_TMP/calls'
exec '$cli' --endpoint-url http://127.0.0.1:$port "\$@"
E1
chmod +x bin/aws
export PATH=$KILN_TMP/bin:$PATH AWS_ACCESS_KEY_ID=S3RVER AWS_SECRET_ACCESS_KEY=S3RVER AWS_DEFAULT_REGION=us-east-1
for _ in $(seq 100); do aws s3 mb s3://bucket >/dev/null 2>&1 && break; sleep 0.3; done
export STORE=s3://bucket/city TASKS=2 POLL=1 PATIENCE=60 KILN=$KILN_BIN/kiln
host() { unshare -m sh -c 'mount --bind "$1" "$2" && cd "$2" && shift 2 && exec "$@"' sh "$KILN_TMP/$1" "$KILN_TMP/here" "${@:2}"; }
host one "$example" work 1/1 s --out b --devices cpu >one.log 2>&1 &
one=$!
begin=$(date +%s)
host lead "$example" lead s --out b --devices cpu >lead.log 2>&1 || fail "lead: $(tail -n 20 lead.log server.log)"
wait $one || fail "work: $(tail -n 20 one.log)"
same alone/manifest.db lead/b/manifest.db
diff -r alone/renders lead/b/renders || fail "pictures differ"
[ "$(aws s3 ls --recursive "$STORE/" | sed 's|.*city/||; s/-.*//' | sort | paste -sd ' ')" = 'round scene' ] || fail "left: $(aws s3 ls --recursive "$STORE/")"
puts=$(grep -c '^s3 cp .* s3://[^ ]*$' calls) gets=$(grep -c '^s3 cp .*s3://[^ ]* ' calls)
[ "$puts" -ge 10 ] && [ "$gets" -ge 10 ] || fail "$puts puts, $gets gets: $(cat calls)"
echo "$(($(date +%s) - begin)) s; $puts puts, $gets gets; manifest $(stat -c %s lead/b/manifest.db) bytes, $(grep -c planned lead.log) rounds; the same digests"
