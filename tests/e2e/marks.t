#!/bin/bash
# What trainers say of their Gaussians, wherever it stands: antialiased by a comment of Postshot, gsplat's cfg.yml, nerfstudio's
# config.yml, INRIA's cfg_args; 2DGS through the formats that have a word for it.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
imp() { "$KILN_BIN/kiln-import" "$@"; }
antialiased() { sqlite3 "file:$1?mode=ro" 'SELECT antialiased FROM scene'; }
dialect() { sqlite3 "file:$1?mode=ro" "SELECT json_extract(notes, '\$.dialect') FROM scene"; }
# says WANT [what the finding says]: the scene s is imported anew
says() {
    rm -rf m.db*
    must 0 imp s m.db
    [ "$(antialiased m.db)" = "$1" ] || fail "antialiased is not $1: $(cat err)"
    [ -z "${2:-}" ] || grep -q "$2" err || fail "no '$2': $(cat err)"
}
comment() { py comment "$1"; }

kiln generate scene s --gaussians 300 --cameras 2 --size 64x48 >/dev/null || fail generate
ply=$(find s -name '*.ply' | head -n 1)
[ "$ply" = s/scene.ply ] || mv "$ply" s/scene.ply
cp s/scene.ply plain.ply

test_case 'a file that says nothing' && (
    says 0
); result

test_case 'a comment of Postshot' && (
    comment postshot.anti_aliasing=1
    says 1
    cp plain.ply s/scene.ply
    comment postshot.anti_aliasing=0
    says 0
    cp plain.ply s/scene.ply
); result

test_case 'cfg.yml of gsplat' && (
    printf 'data_dir: x\nantialiased: true\n' >s/cfg.yml
    says 1 'settings: cfg.yml (gsplat: antialiased)'
    printf 'strategy:\n  antialiased: true\nantialiased: false\n' >s/cfg.yml
    says 0 'settings: cfg.yml (gsplat: antialiased is off)'
    rm s/cfg.yml
); result

test_case 'cfg.yml that comes later: imported again, drawn anew, and nothing to do then' && (
    rm -rf m.db*
    must 0 imp s m.db
    echo 'antialiased: true' >s/cfg.yml
    must 0 imp s m.db
    [ "$(antialiased m.db)" = 1 ] || fail 'cfg.yml came later and is not seen'
    must 0 imp s m.db && grep -q 'nothing to do' err || fail "not up to date: $(cat err)"
    rm s/cfg.yml
); result

test_case 'cfg.yml in the folder of results' && (
    mkdir -p s/results/ply && mv s/scene.ply s/results/ply/point_cloud_29999.ply
    echo 'antialiased: True' >s/results/cfg.yml
    says 1 'settings: results/cfg.yml'
    mv s/results/ply/point_cloud_29999.ply s/scene.ply && rm -r s/results
); result

printf '%s\n' '!!python/object:nerfstudio.engine.trainer.TrainerConfig' 'pipeline: !!python/object:x' '  model: !!python/object:y' \
    '    rasterize_mode: antialiased' >config.yml

test_case 'config.yml of nerfstudio' && (
    cp config.yml s/
    says 1 'nerfstudio: rasterize_mode antialiased'
    sed -i s/antialiased/classic/ s/config.yml
    says 0 'rasterize_mode antialiased is off'
    rm s/config.yml
); result

test_case 'config.yml of trainings beside an export' && (
    mkdir -p s/outputs/a/splatfacto/2026-01-01_120000 s/outputs/b/splatfacto/2026-01-02_120000 s/exports/splat
    mv s/scene.ply s/exports/splat/splat.ply
    cp config.yml s/outputs/a/splatfacto/2026-01-01_120000/
    says 1 'outputs/a/splatfacto/2026-01-01_120000/config.yml'
    sed s/antialiased/classic/ config.yml >s/outputs/b/splatfacto/2026-01-02_120000/config.yml
    says 0 '2 trainings are in .outputs., and 1 of them are antialiased'
    rm -r s/outputs && mv s/exports/splat/splat.ply s/scene.ply && rm -r s/exports
); result

test_case 'a pipe in the place of config.yml is not waited for' && (
    mkfifo s/config.yml # no regular file: not waited for
    says 0
    rm s/config.yml
); result

test_case 'cfg_args of INRIA' && (
    echo "Namespace(antialiasing=True, eval=False)" >s/cfg_args
    says 1 'settings: cfg_args (antialiasing)'
    rm s/cfg_args
); result

test_case '2DGS through the formats that have a word for it' && (
    comment 'SplatRenderMode: 2dgs'
    says 0 '2DGS: its surfels are drawn as flat 3D Gaussians'
    for stage in knn prune chunk lod; do kiln $stage m.db >/dev/null || fail $stage; done
    kiln export m.db -f sog -o x.sog >/dev/null || fail sog
    kiln export m.db -f compressed-ply -o x.compressed.ply >/dev/null || fail compressed-ply
    kiln export m.db -f lod -o lod >/dev/null || fail lod
    head -c 400 x.compressed.ply | grep -aq 'SplatRenderMode: 2dgs' || fail 'compressed PLY'
    for file in x.sog x.compressed.ply lod; do
        rm -rf y.db*
        must 0 imp "$file" y.db
        [ "$(dialect y.db)" = 2dgs ] || fail "$file: $(dialect y.db)"
    done
); result
