#!/bin/bash
# Pruning by default changes no picture for the worse: far, large, opaque Gaussians of a capture stay, whatever the spacing rule
# thinks of their scales, and it is said what the rule would do. Where such axes hold most of some camera's pairs the rules act, as
# given limits always do. The answer is the same on any threads and over hosts, and cameras are part of it.
. tests/e2e/lib.sh
. tests/e2e/pruning.sh
command -v python3 >/dev/null || skip "no python3"
root=$PWD
cd "$KILN_TMP" || exit 1
value() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))
v = eval(sys.argv[2])
print(*(v if isinstance(v, tuple) else [v]))' "$@" || fail "$2 of $1"; }

# photos are the whole scene's pictures
python3 "$root/tests/e2e/capture.py" s || fail capture
imported s whole.db
kiln prune whole.db --max-spacing off --max-extent off >/dev/null && kiln chunk whole.db >/dev/null || fail "whole"
kiln render whole.db -o photos/ >/dev/null || fail "photos"
cp photos/*.png s/

# photo by photo, with the rules off and as they are by default
for name in off default; do
    imported s $name.db
    rules=; [ $name = default ] || rules='--max-spacing off --max-extent off'
    must 0 "$KILN_BIN/kiln-prune" $name.db $rules
    cp out $name.said
    kiln chunk $name.db >/dev/null && kiln render $name.db --json >$name.json || fail "$name"
done

test_case 'pruning by default costs no photo anything' && (
    lost=$(py lost) || fail "pruning by default: $lost"
    echo "$lost"
    [ "$(pruned off.db)" = "$(pruned default.db)" ] || fail "pruning by default changed something"
); result

test_case 'what is told of the rule is true' && (
    grep -q 'max-spacing is auto and stays off: 32 would drop 12 Gaussians' default.said || fail "says: $(cat default.said)"
    grep -q 'the Gaussians that it would touch hold at most 1.* % of a view.s predicted pairs, less than half' default.said ||
        fail "says: $(cat default.said)"
); result

test_case 'a second run does nothing' && (
    must 0 "$KILN_BIN/kiln-prune" default.db
    grep -q 'nothing to do' err || fail "says: $(cat err)"
); result

test_step 'a limit that is given acts, is kept, and says what it costs' && (
    must 0 "$KILN_BIN/kiln-prune" default.db --max-spacing 32
    grep -q '^dropped or changed: 12 Gaussians; up to [0-9]* in one view,$' out || fail "says: $(cat out)"
    must 0 kiln prune default.db --dry-run --json
    [ "$(value out "r['kept'], r['rules']['max-spacing']['dropped'], r['rules']['max-spacing'].get('auto')")" = '3700 12 None' ] ||
        fail "a given limit is not kept"
    [ "$(value out "r['touched']['rows'], r['touched']['visible_at_most'] in range(4, 13), 0.001 < r['touched']['pairs_share'] < 0.02")" = '12 True True' ] ||
        fail "what is touched: $(value out "r['touched']")"
); result

without=$(pruned default.db)

test_step 'auto and --reset return' && (
    must 0 kiln prune default.db --max-spacing auto
    [ "$(pruned off.db)" = "$(pruned default.db)" ] || fail "auto does not return"
    kiln prune default.db --max-spacing 32 >/dev/null && kiln prune default.db --reset >/dev/null || fail "reset"
    [ "$(pruned off.db)" = "$(pruned default.db)" ] || fail "--reset does not return"
); result

test_case 'a camera that sees little else: the rules act' && (
    cp -r s looking
    py outward || fail "cameras"
    must 0 kiln import looking default.db
    must 4 kiln chunk default.db
    must 0 "$KILN_BIN/kiln-prune" default.db
    grep -q 'are dropped or clamped: they hold more than half of some camera.s predicted pairs; --max-spacing off keeps them' err || fail "warns: $(cat err)"
    [ "$(pruned default.db)" = "$without" ] || fail "auto acts otherwise than the limits that it stands for"
    must 0 kiln import s default.db
    must 0 kiln prune default.db
    [ "$(pruned off.db)" = "$(pruned default.db)" ] || fail "without that camera the rules still act"
); result

# exploded: the rules act; the same with threads, without the units that others left, and over hosts
python3 "$root/tests/e2e/capture.py" x exploded || fail exploded
imported x x.db
cp x.db hosts.db
cp x.db given.db
must 0 kiln prune x.db --threads 1 --json
cp out x.json

test_case 'an exploded scene: the rules act' && (
    [ "$(value x.json "r['rules']['max-spacing']['auto']['acts'], r['kept'] < 3400")" = 'True True' ] ||
        fail "the rules rest where a scene exploded"
    [ "$(value x.json "sum(c['pairs'][1] for c in r['cameras']) * 2 < sum(c['pairs'][0] for c in r['cameras'])")" = True ] ||
        fail "pairs stay"
); result

test_case 'an exploded scene on other threads' && (
    kiln prune x.db --force --threads 3 >/dev/null || fail "other threads, other results"
); result

test_case 'auto acts as the limits that it stands for' && (
    kiln prune given.db --max-spacing 32 --max-extent 0.5 >/dev/null || fail "given"
    [ "$(pruned x.db)" = "$(pruned given.db)" ] || fail "auto acts otherwise than the limits that it stands for"
); result

export KILN_ROUND_S=0

test_case 'an exploded scene over hosts' && (
    over_hosts hosts.db
    [ $rounds = 1 ] || fail "the forecasts are not what is shared out in $rounds rounds" # one block, and a few cameras decide
    [ "$(pruned x.db)" = "$(pruned hosts.db)" ] || fail "hosts come to another answer"
); result

# several blocks, and rules that rest, so that all cameras are asked: marks, weights, blocks, forecasts
scene many 140000 6 96x64 --explode 1 --explode-by 6.9078
imported many many.db
cp many.db hosts.db
kiln prune many.db --json >many.json || fail "many"

test_case 'several blocks, and rules that rest' && (
    [ "$(value many.json "not r['rules']['max-spacing']['auto']['acts'] and r['rules']['max-spacing']['auto']['would_drop'] > 9")" \
        = True ] ||
        fail "many: $(value many.json "r['rules']")"
); result

test_case 'several blocks over hosts' && (
    over_hosts hosts.db
    [ $rounds = 4 ] || fail "$rounds rounds, not marks, weights, blocks and forecasts"
    [ "$(pruned many.db)" = "$(pruned hosts.db)" ] || fail "hosts come to another answer"
); result

unset KILN_ROUND_S

test_case 'however little memory there is, the same is stored' && (
    kiln prune many.db --force --ram 120M --threads 1 >/dev/null || fail "the cap changes the answer"
); result

test_case 'no cameras: eight on an orbit judge' && (
    scene g 3000 1 64x64 --explode 400 --explode-by 6
    mkdir bare && cp g/scene.ply bare/
    imported bare bare.db
    must 0 "$KILN_BIN/kiln-prune" bare.db
    grep -q 'of some camera.s predicted pairs (on an orbit; the scene has no cameras); --' err || fail "warns: $(cat err)"
); result
