#!/bin/bash
# examples/object-store.sh: hosts that share nothing but a store come to the digest of a bake in one go. Each host has a mount namespace
# in which the same paths are folders of its own. Of twelve objects the store loses two and tears two, one of seven is cut short on its
# way back, and parts of rounds that are over come again; one host dies in the middle. PATIENCE=n: for machines that are busy with other work.
# time-limit: 2400
. tests/e2e/lib.sh
unshare -m true 2>/dev/null || skip 'this machine allows no mount namespaces'
example=$PWD/examples/object-store.sh
cd "$KILN_TMP" || fail "cd"
mkdir here store lead one two bin
scene lead/s 5000 3 160x100
must 0 "$KILN_BIN/kiln" pipeline lead/s --out "$KILN_TMP/alone" --devices cpu
cp alone/renders/cam0.png lead/s/
rm -r alone
must 0 "$KILN_BIN/kiln" pipeline lead/s --out "$KILN_TMP/alone" --devices cpu
cp -a lead/s "$KILN_TMP/s.before"
# put FILE NAME: a fault by the number of the call; get OBJECT FILE
cat >bin/put <<E1
#!/bin/bash
exec 8>'$KILN_TMP/count.lock'; flock 8
n=\$((\$(cat '$KILN_TMP/count' 2>/dev/null || echo 0) + 1)); echo \$n >'$KILN_TMP/count'
mkdir -p "\$(dirname '$KILN_TMP/store'/"\$2")"
case \$((n % 12)) in
3 | 7) echo "lost \$2" >>'$KILN_TMP/faults'; exit 0 ;;
4 | 8) case \$2 in round) ;; *) echo "torn \$2" >>'$KILN_TMP/faults'; head -c 1000 "\$1" >'$KILN_TMP/store'/"\$2"; exit 0 ;; esac ;;
esac
cp "\$1" '$KILN_TMP/store'/"\$2.new" && mv '$KILN_TMP/store'/"\$2.new" '$KILN_TMP/store'/"\$2"
# what was put once may come again much later
case \$2 in */[0-9]*) mkdir -p "$KILN_TMP/old/\${2%/*}"; cp "\$1" '$KILN_TMP/old'/"\$2" ;; esac
[ \$((n % 9)) != 0 ] || [ ! -d '$KILN_TMP'/old ] || cp -r '$KILN_TMP'/old/. '$KILN_TMP/store'/
exit 0
E1
cat >bin/get <<E2
#!/bin/bash
exec 8>'$KILN_TMP/gets.lock'; flock 8
n=\$((\$(cat '$KILN_TMP/gets' 2>/dev/null || echo 0) + 1)); echo \$n >'$KILN_TMP/gets'
exec 8>&-
[ \$((n % 7)) != 4 ] || { echo "cut \$1" >>'$KILN_TMP/faults'; head -c 500 '$KILN_TMP/store'/"\$1" >"\$2"; exit 0; }
cp '$KILN_TMP/store'/"\$1" "\$2"
E2
chmod +x bin/*
export PUT="$KILN_TMP/bin/put \"\$1\" \"\$2\"" GET="$KILN_TMP/bin/get \"\$2\" \"\$1\"" LIST="ls '$KILN_TMP/store'/\$1 2>/dev/null" DELETE="rm -f '$KILN_TMP/store'/\"\$1\""
export TASKS=4 POLL=1 PATIENCE=${PATIENCE:-20} KILN=$KILN_BIN/kiln KILN_ROUND_S=0 # counting pairs is a round, too
# host NAME WORD...: with KILN_TMP/here of its own
host() { exec setsid unshare -m sh -c 'mount --bind "$1" "$2" && cd "$2" && shift 2 && exec "$@"' sh "$KILN_TMP/$1" "$KILN_TMP/here" "${@:2}"; }
host one "$example" work 1/2 s --out b --devices cpu --threads 1 >one.log 2>&1 &
one=$!
host two "$example" work 2/2 s --out b --devices cpu --threads 1 >two.log 2>&1 &
two=$!
(
    for _ in $(seq 3000); do grep -q ': part ' two.log && break; sleep 0.1; done
    kill -KILL -- "-$two"
) &
timeout 2000 unshare -m sh -c 'mount --bind "$1" "$2" && cd "$2" && shift 2 && exec "$@"' sh "$KILN_TMP/lead" "$KILN_TMP/here" \
    "$example" lead s --out b --devices cpu >lead.log 2>&1 || fail "lead: $? $(tail -n 20 lead.log)"
wait $one || fail "work: $(tail -n 20 one.log)"
same alone/manifest.db lead/b/manifest.db
diff -r alone/renders lead/b/renders || fail "pictures differ"
diff -r alone/export lead/b/export || fail "exports differ"
[ -s lead/b/report.html ] && [ ! -e lead/b/manifest.db.claim ] || fail "left: $(ls lead/b)"
for fault in lost torn cut; do grep -q "^$fault" faults || fail "no object was $fault: $(cat faults)"; done
grep -q ': part ' one.log && grep -q ': part ' two.log || fail "a host did nothing"
[ "$(find store -type f | sed 's|.*/||; s/-.*//' | sort -u | paste -sd ' ')" = 'round scene' ] || fail "left in the store: $(find store -type f)"
tally() { echo "$(grep -c "^$1" faults) $1"; }
echo "$(cat count) puts, of which $(tally lost) and $(tally torn); $(cat gets) gets, of which $(tally cut); the same digests"
