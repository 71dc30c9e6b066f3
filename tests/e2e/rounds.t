#!/usr/bin/env bash
# One list over several hosts: kiln-prune is planned, computed in three parts beside one manifest that nobody writes, and gathered
# to the digest of a run on one host. What is torn, missing, foreign or given with other options costs just that.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
number() { # a.b: out["a"]["b"]
    python3 -SE -c 'import json, sys
v = json.load(open("out"))
for k in sys.argv[1].split("."): v = v[k]
print(v)' "$1"
}
said() { grep -q "$1" err || { cat err >&2; fail "it does not say '$1'"; }; }
# seven blocks, the last one small; without harmonics, so that they are cheap; each fifth row is pruned, so that all planes are new
mkdir s && py splats || fail "scene"
echo '[{"id": 0, "img_name": "a", "width": 64, "height": 64, "fx": 64, "fy": 64, "position": [0.5, 0.5, -2],
    "rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}]' >s/cameras.json
kiln import s base.db >/dev/null && kiln knn base.db >/dev/null || fail "bake"
cp base.db one.db
kiln prune one.db >/dev/null || fail "prune"

cp base.db m.db

test_case 'without a plan there is nothing to take a part of, and nothing to gather' && (
    must 4 kiln prune m.db --shard 1/3 --part parts
    must 4 kiln prune m.db --gather parts
    must 2 kiln prune m.db --part parts
    must 2 kiln prune m.db --plan --gather parts
    must 2 kiln prune m.db --plan --force
    must 2 kiln prune m.db --no-compute
    must 2 kiln tiles m.db --shard 2/1
    ! [ -e parts ] || fail "a refused part left its folder"
); result

test_step 'the plan: what all need is stored, a claim stands, nothing is open' && (
    must 0 kiln prune m.db --plan --tasks 3 --json
    [ "$(number round.due)" = 7 ] && [ "$(number round.tasks)" = 3 ] || fail "the plan says $(cat out)"
    must 0 kiln info m.db --json
    [ "$(number plan.stage)" = prune ] && [ "$(number plan.due)" = 7 ] && [ "$(number plan.tasks)" = 3 ] ||
        fail "info says $(cat out)"
    ! [ -e m.db-wal ] && ! [ -e m.db-shm ] || fail "the plan left a log"
); result

test_case 'while a plan stands other commands wait' && (
    for command in "prune m.db" "knn m.db" "gc m.db" "import s m.db" "prune m.db --shard 1/2"; do
        must 75 kiln $command
        said "kiln-prune --plan"
    done
); result

test_case "steps with other options than the plan's, and no folder of parts" && (
    must 4 kiln prune m.db --shard 1/3 --part parts --max-scale 7 # other options: other units
    said "differ from those of"
    must 3 kiln prune m.db --gather prats
    said "the folder 'prats' of the parts does not exist"
    must 4 kiln prune m.db --gather parts --max-scale 7
); result

sha256sum m.db >before

# three parts at a time; none opens the manifest for writing, nor makes a file beside it
trace=; command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null && trace=1
part() { # STAGE MANIFEST I/N [options]
    local stage=$1 db=$2 shard=$3; shift 3
    if [ -n "$trace" ]; then
        strace -f -qq -o "trace.$stage.${shard%/*}" -e \
            trace=open,openat,creat,rename,renameat,unlink,unlinkat,mkdir,mkdirat,truncate,ftruncate "$KILN_BIN/kiln-$stage" "$db" \
            --quiet --shard "$shard" --part parts "$@" >/dev/null
    else
        kiln "$stage" "$db" --shard "$shard" --part parts "$@" >/dev/null
    fi
}
only_read() { # STAGE MANIFEST: what its parts did
    [ -n "$trace" ] || return 0
    cat trace."$1".* | grep "[/\"]$2" | grep -v "/$2-journal\", O_RDONLY" >touched
    grep -q "$2\", O_RDONLY" touched || fail "the trace does not show the manifest"
    ! grep -E "O_RDWR|O_WRONLY|O_CREAT|$2-(wal|shm)|rename|unlink|truncate|creat\(" touched ||
        fail "a part does more to the manifest than read it"
}

test_step 'three parts at a time: none opens the manifest for writing' && (
    pids=()
    for i in 1 2 3; do part prune m.db $i/3 & pids+=($!); done
    for p in "${pids[@]}"; do wait "$p" || fail "a part ended with $?"; done
    [ "$(ls parts | wc -l)" = 3 ] || fail "not three parts: $(ls parts)"
    sha256sum --quiet -c before || fail "the manifest was changed"
    only_read prune m.db
); result

test_step 'a whole part is not computed again, and serves another number of shards' && (
    must 0 kiln prune m.db --shard 2/3 --part parts --json
    [ "$(number units.done)" = 0 ] || fail "a whole part was computed again"
    must 0 kiln prune m.db --plan --tasks 5
    must 0 kiln prune m.db --shard 4/5 --part parts --json
    [ "$(number units.done)" = 0 ] || fail "units of whole parts were computed again"
    rm parts/*-of-5.part
); result

test_step 'a log that is not in the manifest yet keeps parts out' && (
    rm parts/*-3-of-3.part
    echo x >m.db-wal
    must 75 kiln prune m.db --shard 3/3 --part parts
    said "m.db-wal"
    rm m.db-wal
    ls parts >listed
); result

test_case 'a part that this host cannot read stays' && (
    [ -n "$trace" ] || skip 'no strace' # what this host cannot read is not the part's fault
    must 74 strace -f -qq -o trace.unread -P "$(ls parts/*-1-of-3.part)" -e inject=openat:error=EIO "$KILN_BIN/kiln-prune" m.db \
        --gather parts
    said "cannot open part"
    ls parts | cmp - listed || fail "a part that cannot be read was put aside: $(ls parts)"
); result

# one part is torn, one is missing, one has a flipped byte in a blob: named by tasks, and nothing else is computed again
torn=$(ls parts/*-2-of-3.part) flipped=$(ls parts/*-1-of-3.part)

test_step 'parts that are torn, missing or have a flipped byte cost just that' && (
    truncate -s -70000 "$torn"
    py flip "$flipped"
    must 0 kiln prune m.db --plan --tasks 3
    must 7 kiln prune m.db --gather parts --no-compute --json
    [ "$(number round.missing_shards)" = 1-3 ] || fail "missing: $(cat out)"
    for bad in "$torn" "$flipped"; do
        [ -e "$bad.bad" ] && [ ! -e "$bad" ] || fail "the bad part was not put aside: $(ls parts)"
    done
    must 7 env CUDA_VISIBLE_DEVICES=-1 "$KILN_BIN/kiln-prune" m.db --gather parts --devices cuda # nor where the device is missing
    said "this host cannot compute them"
    must 0 kiln prune m.db --shard 1/3 --part parts --json
    [ "$(number units.done)" = 1 ] || fail "$(number units.done) units were computed for a flipped byte"
    must 0 kiln prune m.db --shard 2/3 --part parts --json
    [ "$(number units.done)" = 2 ] || fail "$(number units.done) units of the torn part were computed"
); result

test_case 'the gather computes what is missing, and commits' && (
    touch "$torn.tmp.elsewhere.4711.0"
    must 0 kiln prune m.db --gather parts --remove-parts --json
    [ "$(number units.done)" -ge 2 ] && [ "$(number units.done)" -le 5 ] || fail "the gather computed $(number units.done) units"
    ! [ -e m.db.claim ] || fail "the claim is still there"
    [ "$(ls parts | grep -c 'part\.bad$')" = 2 ] && [ "$(ls parts | wc -l)" = 2 ] || fail "left in the folder: $(ls parts)"
    same one.db m.db
    kiln verify m.db >/dev/null || fail "verify"
    must 0 kiln prune m.db --gather parts --json
    grep -q '"status": "nothing to do"' out || fail "a second gather does something: $(cat out)"
); result

test_case 'a plan is given up' && (
    cp base.db n.db
    must 0 kiln prune n.db --plan
    must 75 kiln prune n.db
    must 0 kiln prune n.db --break-claim --json
    [ "$(number units.done)" = 0 ] && [ "$(number status)" = "given up" ] || fail "--break-claim alone has run: $(cat out)"
    must 0 kiln prune n.db
    same one.db n.db
); result

test_case 'a claim that is cut short' && (
    cp base.db o.db
    printf 'splatkiln-claim 1\nstage prune\n' >o.db.claim
    must 3 kiln prune o.db
    said "cut short"
    must 0 kiln prune o.db --break-claim
    ! [ -e o.db.claim ] || fail "the claim is still there"
); result

# three rounds: ranges of points along a curve, the way back to their blocks, Gaussians of the points; and one for so few points
# that a round takes longer than they do
kiln generate points p --gaussians 140000 >/dev/null && kiln import p q.db >/dev/null || fail "points"
cp q.db r.db && cp q.db few.db && cp q.db k.db
kiln knn q.db >/dev/null || fail "knn"

test_case 'three rounds of kiln-knn' && (
    must 2 kiln knn r.db --shard 1/2
    must 0 kiln knn r.db --plan --tasks 2 --range 40000 --json
    for what in "measuring spacing" "sorting back" "making Gaussians"; do
        [ "$(number round.what)" = "$what" ] || fail "the plan of knn says $(cat out)"
        for i in 1 2; do part knn r.db $i/2 --range 40000 || fail "part $i of $what"; done
        only_read knn r.db
        must 0 kiln knn r.db --gather parts --no-compute --range 40000 --json
    done
    [ "$(number status)" = done ] && [ ! -e r.db.claim ] && [ ! -e r.db.scratch ] ||
        fail "the last gather of knn left $(ls -d r.db*)"
    same q.db r.db
); result

test_case 'a flipped bit in what the plan has made for the tasks' && (
    cp few.db torn.db
    must 0 kiln knn torn.db --plan --tasks 2 --range 40000
    python3 -c 'import sys; f = open(sys.argv[1], "r+b")
f.seek(1000003); b = f.read(1)
f.seek(1000003); f.write(bytes([b[0] ^ 4]))' torn.db.scratch/knn-*/means || fail "flip"
    must 74 kiln knn torn.db --shard 2/2 --part torn --range 40000
    said "is damaged"
    must 0 "$KILN_BIN/kiln-knn" torn.db --gather torn --range 40000
    grep -q "warning: scratch '[^']*/means' differs from what was written" err || fail "the gather says $(cat err)"
    for i in 1 2 3; do must 0 kiln knn torn.db --gather torn --range 40000; done
    same q.db torn.db
); result

test_case "few points are the plan's alone" && (
    must 0 kiln knn few.db --plan --tasks 2 --json
    [ "$(number units.done)" -gt 1 ] && [ ! -e few.db.claim ] || fail "the plan for few points says $(cat out)"
    same q.db few.db
); result

# two rounds: the first gather plans the second; more shards than units
scene t 5000 3 320x240
kiln import t t.db >/dev/null && kiln knn t.db >/dev/null && cp t.db f.db && kiln prune t.db >/dev/null && cp t.db g.db &&
    kiln chunk t.db >/dev/null ||
    fail "bake"
cp t.db u.db
kiln tiles t.db >/dev/null || fail "tiles"
round() {
    local i
    for i in 1 2 3 4; do kiln tiles u.db --shard $i/4 --part tiles >/dev/null || fail "shard $i"; done
    must 0 kiln tiles u.db --gather tiles --no-compute --json
}
cp u.db w.db
cp u.db net.db
cp u.db short.db

test_case 'two rounds of kiln-tiles: the first gather plans the second' && (
    export KILN_ROUND_S=0 # counting is worth a round, as in a large scene
    must 0 kiln tiles u.db --plan --tasks 4 --json
    [ "$(number round.what)" = "counting pairs" ] || fail "the first round is $(number round.what)"
    round
    [ "$(number status)" = planned ] && [ "$(number round.what)" = "tile tables" ] && [ "$(number round.tasks)" = 4 ] ||
        fail "the gather says $(cat out)"
    round
    [ "$(number status)" = done ] && [ "$(number round)" = None ] || fail "the last gather says $(cat out)"
    same t.db u.db
    unset KILN_ROUND_S
); result

test_case "counting that takes less than a round costs is the plan's" && (
    must 0 kiln tiles short.db --plan --tasks 4 --json
    [ "$(number round.what)" = "tile tables" ] && [ "$(number units.done)" = 3 ] || fail "the plan of a small scene says $(cat out)"
); result

# import: the plan makes the manifest and stores hashes and scan, so that a task reads its own blocks alone
mkdir -p i/images && cp s/cameras.json i && head -c $((131072 * 32)) s/scene.splat >i/scene.splat && py photo ||
    fail "scene with a photo"
kiln import i one_import.db >/dev/null || fail "import"

test_case 'an import without a plan, and a plan of a bad scene' && (
    must 4 kiln import i i.db --shard 1/2 --part blocks
    must 4 kiln import i i.db --gather blocks
    head -c 1000000 p/points.ply >cut.ply
    must 3 kiln import cut.ply i.db --plan
    ! [ -e i.db ] || fail "a plan of a bad scene leaves a manifest"
); result

test_step 'an import is planned, and tasks read their own blocks alone' && (
    must 0 kiln import i i.db --plan --tasks 2 --json
    [ "$(number round.due)" = 2 ] || fail "the plan says $(cat out)"
    touch -r i/scene.splat was
    touch -d '2001-01-01' i/scene.splat # another file, as far as a task can see
    must 4 kiln import i i.db --shard 1/2 --part blocks
    said "with unchanged input files"
    touch -r was i/scene.splat
    mv i/images i/away # a task looks at no photo
    for p in 1 2; do
        must 0 kiln import i i.db --shard $p/2 --part blocks --json
        grep -A3 '"lists"' out | grep -q '"importing"' && [ "$(grep -c '"what"' out)" = 2 ] ||
            fail "a task does more than its blocks: $(cat out)"
    done
    mv i/away i/images
); result

test_case 'an import is gathered, with the least --ram that is named' && (
    must 5 kiln import i i.db --gather blocks --no-compute --ram 40M
    least=$(sed -n 's/.*the least that works is --ram \([0-9]*M\)$/\1/p' err)
    [ -n "$least" ] || fail "a gather does not say the least --ram that works: $(cat err)"
    must 0 kiln import i i.db --gather blocks --no-compute --ram "$least"
    same one_import.db i.db
    kiln verify i.db >/dev/null || fail "verify"
    must 0 kiln import i i.db --json
    grep -q '"status": "nothing to do"' out || fail "an import after its rounds does something: $(cat out)"
); result

test_case "a packed file is the plan's alone" && (
    gzip -1 -c p/points.ply >packed.ply.gz # rows in scratch of one host: the plan imports
    must 0 kiln import packed.ply.gz packed.db --plan --json
    [ "$(number status)" = done ] && [ "$(number units.done)" -ge 3 ] && [ ! -e packed.db.claim ] ||
        fail "the plan of a packed file says $(cat out)"
); result

test_case 'forecasts that take long are a round of kiln-prune' && (
    export KILN_ROUND_S=0
    must 0 kiln prune f.db --plan --tasks 2 --json
    [ "$(number round.what)" = "counting pairs" ] && [ "$(number round.due)" = 3 ] || fail "the round of forecasts is $(cat out)"
    for i in 1 2; do must 0 kiln prune f.db --shard $i/2 --part pairs; done
    must 0 kiln prune f.db --gather pairs --no-compute --json
    [ "$(number status)" = done ] && [ "$(number units.done)" = 0 ] || fail "the gather of forecasts says $(cat out)"
    unset KILN_ROUND_S
    same g.db f.db
); result

test_case 'shards on one manifest leave runs that ended well' && (
    must 0 kiln tiles w.db --shard 1/2
    must 0 kiln tiles w.db
    must 0 kiln tiles w.db --shard 2/2 --profile gsplat-1.5
    runs=$(python3 -c 'import json, sqlite3
for code, counters in sqlite3.connect("w.db").execute("SELECT exit_code, counters FROM run WHERE stage = ? ORDER BY id", ("tiles",)):
    print(code, json.loads(counters)["status"], end="; ")')
    [ "$runs" = "0 units stored; 0 done; 0 units stored; " ] || fail "runs: $runs"
    must 0 kiln tiles w.db --json
    [ "$(number pairs)" -gt 0 ] && [ "$(number status)" = "nothing to do" ] || fail "after a shard the report is $(cat out)"
); result

test_case 'where nothing can be shared out, that is said before anything runs' && (
    must 2 kiln export w.db --shard 1/2
    said "one run makes all of it"
    must 2 kiln export w.db --plan
    said "cannot be shared among hosts"
    must 2 "$KILN_BIN/kiln" pipeline t --out new --shard 1/2
    must 2 "$KILN_BIN/kiln" pipeline t --out new --prune-plan
    ! [ -e new ] || fail "a refused pipeline left a folder"
    must 3 "$KILN_BIN/kiln" pipeline t/scene.ply/
    said "without the slash"
); result

# pictures: files beside the manifest, in a round; one before it counts cameras where the plan's memory is small
mkdir drawn at && cp t.db drawn/d.db && cp t.db at/d.db && kiln render drawn/d.db >/dev/null || fail "render"

test_step 'pictures are files beside the manifest, in a round' && (
    must 0 kiln render at/d.db --plan --tasks 2
    for i in 1 2; do part render at/d.db $i/2 || fail "part $i of the pictures"; done
    only_read render d.db
); result

mkdir kept && cp -r at parts kept

test_case 'pictures that are lost or others are made again' && (
    rm at/renders/cam0.png && cp at/renders/cam2.png at/renders/cam1.png
    must 7 env KILN_FILES_MS=200 "$KILN_BIN/kiln-render" at/d.db --gather parts --no-compute --json
    [ "$(number round.missing)" = 2 ] && ls parts/render*.bad >/dev/null || fail "the gather says $(cat out)"
    for i in 1 2; do must 0 kiln render at/d.db --shard $i/2 --part parts; done
    rm at/renders/cam0.png
    must 0 env KILN_FILES_MS=200 "$KILN_BIN/kiln-render" at/d.db --gather parts --json # draws that one itself
    [ "$(number units.done)" = 1 ] && [ "$(number status)" = done ] || fail "the gather says $(cat out)"
    same drawn/d.db at/d.db
    diff -r drawn/renders at/renders || fail "pictures differ"
); result

test_case 'a picture that comes late is waited for' && (
    rm -rf at parts && cp -r kept/at kept/parts . && mv at/renders/cam0.png late.png
    (sleep 0.3; mv late.png at/renders/cam0.png) &
    must 0 kiln render at/d.db --gather parts --no-compute --json
    [ "$(number units.done)" = 0 ] || fail "a late picture was drawn again: $(cat out)"
    same drawn/d.db at/d.db
); result

test_case 'plans of pictures with other devices and with little memory' && (
    rm -rf at && cp -r kept/at .
    must 0 kiln render at/d.db --break-claim --plan --devices cpu
    must 4 kiln render at/d.db --shard 1/1 --part parts --devices cuda
    must 0 kiln render at/d.db --break-claim --plan --ram 40M --json # counting
    [ "$(number round.units)" = 3 ] && grep -q "memory is tight" out || fail "a plan with little memory says $(cat out)"
); result

# on a network file system plan and gather work on a copy, which takes the manifest's place whole; parts and readers only read
mkdir net local && mv net.db net/m.db
export KILN_NETWORK_FS=$PWD/net

test_case 'on a network file system --plan wants --scratch-dir' && (
    must 74 kiln tiles net/m.db
    must 2 kiln tiles net/m.db --plan
    said "scratch-dir"
); result

test_step 'on a network file system plan and gather work on a copy' && (
    export KILN_ROUND_S=0
    must 0 kiln tiles net/m.db --plan --tasks 2 --scratch-dir local
    for i in 1 2; do
        for task in 1 2; do must 0 kiln tiles net/m.db --shard $task/2 --part net/parts; done
        must 0 kiln info net/m.db
        [ "$(ls net | tr '\n' ' ')" = "m.db m.db.claim parts " ] || fail "beside the manifest: $(ls net)"
        if [ -n "$trace" ]; then # killed when the copy is to take the manifest's place
            sha256sum net/m.db >before
            { strace -f -qq -o trace.kill -e trace=rename -e inject=rename:signal=KILL:when=1 "$KILN_BIN/kiln-tiles" net/m.db \
                --gather net/parts --scratch-dir local >/dev/null; } 2>/dev/null &&
                fail "the gather was not killed"
            sha256sum --quiet -c before || fail "a gather that was killed has changed the manifest"
        fi
        must 0 kiln tiles net/m.db --gather net/parts --no-compute --remove-parts --scratch-dir local
    done
    unset KILN_ROUND_S
    [ "$(ls net | tr '\n' ' ')" = "m.db parts " ] && [ -z "$(ls net/parts)$(ls local)" ] || fail "left: $(ls net net/parts local)"
); result

test_case 'what a plan leaves for its tasks is beside the manifest' && (
    mv k.db net/k.db
    must 0 kiln knn net/k.db --plan --tasks 2 --range 40000 --scratch-dir local
    must 0 kiln knn net/k.db --shard 2/2 --part net/parts --range 40000
); result

test_step 'an import of one block on a network file system' && (
    must 0 kiln import t net/new/i.db --plan --scratch-dir local # one block: nothing is shared out
); result

test_step "a folder of chunk's plan on a network file system" && (
    cp t.db net/c.db && cp t.db c.db && kiln chunk c.db --max 512 >/dev/null || fail "chunk"
    # what it makes for its tasks is beside the manifest, not the copy
    must 0 kiln chunk net/c.db --plan --max 512 --scratch-dir local
    [ -d net/c.db.scratch ] || fail "no scratch for tasks"
    must 0 kiln chunk net/c.db --shard 1/1 --max 512 --part net/parts
    must 0 kiln chunk net/c.db --gather net/parts --max 512 --no-compute --scratch-dir local
    [ ! -e net/c.db.scratch ] && [ -z "$(ls local)" ] || fail "left: $(ls net local)"
); result

unset KILN_NETWORK_FS

test_case 'what was made on a network file system is the same' && (
    same t.db net/m.db
    same c.db net/c.db
    kiln verify net/new/i.db >/dev/null || fail "verify"
); result

test_case 'a camera that cannot be counted: the rounds go on without it' && (
    kiln import t v.db >/dev/null && kiln knn v.db >/dev/null && kiln prune v.db >/dev/null && kiln chunk v.db >/dev/null ||
        fail "bake"
    export KILN_ROUND_S=0
    must 0 kiln tiles v.db --plan
    must 7 env KILN_FAULT='unit=pairs of *1*:exit' "$KILN_BIN/kiln-tiles" v.db --shard 1/1 --part failed
    must 0 env KILN_FAULT='unit=pairs of *1*:exit' "$KILN_BIN/kiln-tiles" v.db --gather failed --json
    [ "$(number status)" = planned ] && [ "$(number units.quarantined)" = 1 ] || fail "the gather says $(cat out)"
    must 0 kiln tiles v.db --shard 1/1 --part failed --json
    [ "$(number units.done)" = 4 ] || fail "the second round made $(number units.done) units, not two cameras' list and band"
    must 7 kiln tiles v.db --gather failed --no-compute
    ! [ -e v.db.claim ] || fail "a partial stage keeps its claim"
    must 0 kiln tiles v.db
    same t.db v.db
); result
