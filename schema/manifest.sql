-- manifest.sql -- the tables of a manifest, schema version 2. SCHEMA.md says how to read them and what the blobs hold.
-- What stands behind the line VERSION 2 makes a manifest of version 2 of one of version 1: a new manifest gets both, and the first
-- program that opens an old one for writing runs the second part over it, in one transaction. A text that a stored manifest may have
-- never changes, so that comments of the first part describe version 1.
-- The library runs this file in one transaction when it makes a manifest. Before it: page_size 65536, journal_mode WAL.
-- Hashes are 16 bytes: XXH3-128 in canonical (big-endian) order. Times are nanoseconds since 1970-01-01 UTC.
-- NaN is stored as NULL. STRICT tables need SQLite 3.37 or newer.

PRAGMA application_id = 0x4b494c4e; -- 'KILN'
PRAGMA user_version = 1;            -- schema version; a program refuses a newer one. It is 2 when all of this has run

-- Bulk data, addressed by content and stored once.
CREATE TABLE blob (
    id        INTEGER PRIMARY KEY,                                 -- SQLite's own; means nothing
    hash      BLOB NOT NULL UNIQUE CHECK (length(hash) = 16),      -- of the raw bytes
    elem      INTEGER NOT NULL CHECK (elem IN (1, 2, 4, 8)),       -- element size of the byte shuffle
    raw_bytes INTEGER NOT NULL CHECK (raw_bytes BETWEEN 0 AND 67108864), -- size when decoded; at most 64 MiB
    packed    BLOB NOT NULL                                        -- one zstd frame of the shuffled bytes
) STRICT;

-- The build cache: one row for each finished piece of work.
CREATE TABLE unit (
    id          INTEGER PRIMARY KEY,                               -- what unit_output refers to
    key         BLOB NOT NULL UNIQUE CHECK (length(key) = 16),     -- hash of stage, version, parameters and inputs
    stage       TEXT NOT NULL,                                     -- stage that did it
    name        TEXT NOT NULL,                                     -- for people: "block 12"
    counters    TEXT NOT NULL,                                     -- JSON object: the unit's own numbers
    wall_ns     INTEGER NOT NULL,                                  -- time that it took
    finished_ns INTEGER NOT NULL                                   -- when it was stored
) STRICT;

CREATE TABLE unit_output (
    unit      INTEGER NOT NULL REFERENCES unit (id) ON DELETE CASCADE, -- whose output
    name      TEXT NOT NULL,                                       -- "means", "plan", ...
    segment   INTEGER NOT NULL CHECK (segment >= 0),               -- 0, 1, ... of an array above 64 MiB
    hash      BLOB NOT NULL REFERENCES blob (hash),                -- its bytes
    raw_bytes INTEGER NOT NULL CHECK (raw_bytes >= 0),             -- as the blob says
    elem      INTEGER NOT NULL CHECK (elem IN (1, 2, 4, 8)),       -- its own; equal bytes of other elements are the same blob
    PRIMARY KEY (unit, name, segment)
) STRICT, WITHOUT ROWID;

-- Units that failed on every device, until a run does them.
CREATE TABLE quarantine (
    key       BLOB PRIMARY KEY CHECK (length(key) = 16),           -- key of the unit
    stage     TEXT NOT NULL,                                       -- stage it belongs to
    name      TEXT NOT NULL,                                       -- for people: "chunk /0/3"
    attempts  INTEGER NOT NULL,                                    -- how often it was tried
    device    TEXT NOT NULL,                                       -- where it failed last
    reason    TEXT NOT NULL,                                       -- the sentence of the last failure
    failed_ns INTEGER NOT NULL                                     -- when
) STRICT;

-- What was imported: one row.
CREATE TABLE scene (
    id            INTEGER PRIMARY KEY CHECK (id = 1),              -- always 1
    name          TEXT NOT NULL,                                   -- of the directory or file
    kind          TEXT NOT NULL CHECK (kind IN ('none', 'points', 'splats')), -- what the chosen source holds
    source_path   TEXT NOT NULL,                                   -- the chosen splat or point file; '' when none
    source_format TEXT NOT NULL,                                   -- reader's name: "ply"; '' when none
    rows_read     INTEGER NOT NULL CHECK (rows_read >= 0),         -- rows in the source
    rows_dropped  INTEGER NOT NULL CHECK (rows_dropped >= 0),      -- rows that import left out; reasons in notes
    sh_degree     INTEGER NOT NULL CHECK (sh_degree BETWEEN 0 AND 8), -- of the spherical harmonics
    antialiased   INTEGER NOT NULL CHECK (antialiased IN (0, 1)),  -- 1: trained with mip compensation
    frame         TEXT NOT NULL,                                   -- axes of the source: "opencv", "opengl"; '' unknown
    up_axis       TEXT NOT NULL,                                   -- "y", "-y", "0 0.5 1"; '' unknown
    unit          TEXT NOT NULL,                                   -- of length: "m"; '' unknown
    origin_x      REAL NOT NULL,                                   -- subtracted from every coordinate and camera
    origin_y      REAL NOT NULL,                                   -- see origin_x
    origin_z      REAL NOT NULL,                                   -- see origin_x
    transforms    TEXT NOT NULL,                                   -- JSON array: what was applied to coordinates, in order
    root_x        REAL,                                            -- centre of the root cube of chunks; NULL: no rows
    root_y        REAL,                                            -- see root_x
    root_z        REAL,                                            -- see root_x
    root_half     REAL,                                            -- half its edge, a power of two
    background_r  REAL,                                            -- background that the source names, 0..1; NULL: none
    background_g  REAL,                                            -- see background_r
    background_b  REAL,                                            -- see background_r
    notes         TEXT NOT NULL                                    -- JSON object: header comments, counters by reason
) STRICT;

-- Files that import looked at: what freshness is judged by.
CREATE TABLE source_file (
    path     TEXT PRIMARY KEY,                                     -- absolute
    role     TEXT NOT NULL,                                        -- "splats", "points", "cameras", "photo", ...
    size     INTEGER NOT NULL CHECK (size >= 0),                   -- bytes
    mtime_ns INTEGER NOT NULL,                                     -- time of last change
    inode    INTEGER NOT NULL,                                     -- file number, as a signed 64-bit integer
    hash     BLOB NOT NULL CHECK (length(hash) = 16)               -- of the content
) STRICT, WITHOUT ROWID;

CREATE TABLE camera (
    name      TEXT PRIMARY KEY,                                    -- photo's path without image folder and extension
    r00 REAL NOT NULL, r01 REAL NOT NULL, r02 REAL NOT NULL,       -- rotation of cam_from_world, first row:
    r10 REAL NOT NULL, r11 REAL NOT NULL, r12 REAL NOT NULL,       -- camera axes are x right, y down, z forward;
    r20 REAL NOT NULL, r21 REAL NOT NULL, r22 REAL NOT NULL,       -- the world is the source's, origin not subtracted
    t0  REAL NOT NULL, t1  REAL NOT NULL, t2  REAL NOT NULL,       -- translation of cam_from_world
    width     INTEGER NOT NULL CHECK (width BETWEEN 1 AND 4294967295),  -- of the picture in pixels
    height    INTEGER NOT NULL CHECK (height BETWEEN 1 AND 4294967295), -- of the picture in pixels
    fx        REAL NOT NULL,                                       -- focal length in pixels, across
    fy        REAL NOT NULL,                                       -- focal length in pixels, down
    cx        REAL NOT NULL,                                       -- principal point; the first pixel's centre is 0.5
    cy        REAL NOT NULL,                                       -- principal point
    model     TEXT NOT NULL,                                       -- COLMAP's name: "PINHOLE", "OPENCV", ...
    params    BLOB NOT NULL CHECK (length(params) % 8 = 0),        -- the model's parameters, little-endian float64
    distorted INTEGER NOT NULL CHECK (distorted IN (0, 1)),        -- 1: a lens term is not zero
    synthetic INTEGER NOT NULL CHECK (synthetic IN (0, 1)),        -- 1: made by us on an orbit
    split     TEXT NOT NULL CHECK (split IN ('train', 'test'))     -- which views the means of metrics are taken over
) STRICT, WITHOUT ROWID;

CREATE TABLE photo (
    camera TEXT PRIMARY KEY REFERENCES camera (name) ON DELETE CASCADE, -- whose photo; a camera without one has no row
    path   TEXT NOT NULL,                                          -- absolute
    width  INTEGER NOT NULL CHECK (width >= 0),                    -- as the file says
    height INTEGER NOT NULL CHECK (height >= 0)                    -- as the file says
) STRICT, WITHOUT ROWID;

-- Immutable sets of rows. Rows of older outputs stay until kiln-gc.
CREATE TABLE layer (
    id        INTEGER PRIMARY KEY,                                 -- what chunk and stage_output refer to
    kind      TEXT NOT NULL,                                       -- "source", "spacing", "initial", "pruned", "baked"
    digest    BLOB NOT NULL CHECK (length(digest) = 16),           -- SCHEMA.md, "Digests"
    count     INTEGER NOT NULL CHECK (count >= 0),                 -- rows of all chunks
    sh_degree INTEGER NOT NULL CHECK (sh_degree BETWEEN 0 AND 8),  -- of the plane shN
    UNIQUE (kind, digest)
) STRICT;

CREATE TABLE chunk (
    id         INTEGER PRIMARY KEY,                                -- what plane refers to
    layer      INTEGER NOT NULL REFERENCES layer (id) ON DELETE CASCADE, -- whose
    ordinal    INTEGER NOT NULL CHECK (ordinal >= 0),              -- place in the layer: 0, 1, ...
    name       TEXT NOT NULL,                                      -- block "00000012", chunk "/0/3/5-7"
    parent     TEXT NOT NULL,                                      -- path of the parent cell; '' for blocks
    count      INTEGER NOT NULL CHECK (count BETWEEN 0 AND 4294967295), -- rows
    level      INTEGER NOT NULL CHECK (level >= 0),                -- of detail: 0
    hilbert_lo INTEGER NOT NULL,                                   -- first Hilbert code; 0 for blocks
    hilbert_hi INTEGER NOT NULL,                                   -- last Hilbert code; 0 for blocks
    box_min_x REAL NOT NULL, box_min_y REAL NOT NULL, box_min_z REAL NOT NULL, -- box of the means
    box_max_x REAL NOT NULL, box_max_y REAL NOT NULL, box_max_z REAL NOT NULL, -- box of the means
    reach_min_x REAL NOT NULL, reach_min_y REAL NOT NULL, reach_min_z REAL NOT NULL, -- box of where alpha can be 1/255
    reach_max_x REAL NOT NULL, reach_max_y REAL NOT NULL, reach_max_z REAL NOT NULL, -- box of where alpha can be 1/255
    max_log_scale     REAL NOT NULL,                               -- largest of the plane log_scales
    max_opacity_logit REAL NOT NULL,                               -- largest of the plane opacity_logits
    UNIQUE (layer, ordinal),
    UNIQUE (layer, name)
) STRICT;

CREATE TABLE plane (
    id         INTEGER PRIMARY KEY,                                -- what plane_segment refers to
    chunk      INTEGER NOT NULL REFERENCES chunk (id) ON DELETE CASCADE, -- whose
    name       TEXT NOT NULL,                                      -- a row of planes.def, or "extra/NAME"
    type       TEXT NOT NULL CHECK (type IN ('u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'f32', 'f64')), -- of an element
    components INTEGER NOT NULL CHECK (components > 0),            -- stored one after the other, chunk.count elements each
    raw_bytes  INTEGER NOT NULL CHECK (raw_bytes >= 0),            -- chunk.count * components * size of type
    UNIQUE (chunk, name)
) STRICT;

CREATE TABLE plane_segment (
    plane   INTEGER NOT NULL REFERENCES plane (id) ON DELETE CASCADE, -- whose
    segment INTEGER NOT NULL CHECK (segment >= 0),                 -- 0, 1, ...: 64 MiB each, the last one shorter
    hash    BLOB NOT NULL REFERENCES blob (hash),                  -- its bytes
    PRIMARY KEY (plane, segment)
) STRICT, WITHOUT ROWID;

-- One row for each stage that ever finished.
CREATE TABLE stage (
    name        TEXT PRIMARY KEY,                                  -- a row of stages.def
    version     INTEGER NOT NULL,                                  -- algorithm version of the current output
    state       TEXT NOT NULL CHECK (state IN ('missing', 'fresh', 'stale', 'partial')), -- of the current output
    input_key   BLOB NOT NULL CHECK (length(input_key) = 16),      -- hash of parameters, version and inputs
    finished_ns INTEGER NOT NULL                                   -- when it became current
) STRICT, WITHOUT ROWID;

CREATE TABLE stage_output (
    stage  TEXT NOT NULL,                                          -- whose
    role   TEXT NOT NULL,                                          -- for a layer its kind
    digest BLOB NOT NULL CHECK (length(digest) = 16),              -- of what is current
    layer  INTEGER REFERENCES layer (id),                          -- the layer of that kind and digest; NULL: no layer
    PRIMARY KEY (stage, role)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX stage_output_layer ON stage_output (role) WHERE layer IS NOT NULL; -- one current layer of a kind

-- Options given to a stage, used by later runs until --reset.
CREATE TABLE parameter (
    stage TEXT NOT NULL,                                           -- whose
    name  TEXT NOT NULL,                                           -- the option without dashes
    value TEXT NOT NULL,                                           -- canonical text
    PRIMARY KEY (stage, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE run (
    id         INTEGER PRIMARY KEY,                                -- in the order of recording
    stage      TEXT NOT NULL,                                      -- what ran
    program    TEXT NOT NULL,                                      -- with its version: "kiln-knn 0.1.0"
    parameters TEXT NOT NULL,                                      -- JSON object
    device     TEXT NOT NULL,                                      -- "cpu-avx2, 2 threads" or a UUID
    counters   TEXT NOT NULL,                                      -- JSON object: the stage's numbers, units, peak memory
    start_ns   INTEGER NOT NULL,                                   -- when
    stop_ns    INTEGER NOT NULL,                                   -- when
    exit_code  INTEGER NOT NULL                                    -- 0 done, 7 partial, ...
) STRICT;

CREATE TABLE tile_table (
    id          INTEGER PRIMARY KEY,                               -- what tile_band and tile_segment refer to
    camera      TEXT NOT NULL,                                     -- camera.name
    profile     TEXT NOT NULL,                                     -- "inria", "gsplat-1.5", "gsplat-1.6"
    antialiased INTEGER NOT NULL CHECK (antialiased IN (0, 1)),    -- 1: with mip compensation
    near_m      REAL NOT NULL,                                     -- near plane, scene units
    width       INTEGER NOT NULL,                                  -- of the picture in pixels
    height      INTEGER NOT NULL,                                  -- of the picture in pixels
    tiles_x     INTEGER NOT NULL,                                  -- tiles across
    tiles_y     INTEGER NOT NULL,                                  -- tiles down
    key         BLOB NOT NULL CHECK (length(key) = 16),            -- of what it was made from
    digest      BLOB NOT NULL CHECK (length(digest) = 16),         -- SCHEMA.md, "Digests"
    visible     INTEGER NOT NULL CHECK (visible >= 0),             -- Gaussians that the profile counts as visible
    pairs       INTEGER NOT NULL CHECK (pairs >= 0),               -- of all bands
    UNIQUE (camera, profile, antialiased, near_m)
) STRICT;

CREATE TABLE tile_band (
    tile_table INTEGER NOT NULL REFERENCES tile_table (id) ON DELETE CASCADE, -- whose
    band       INTEGER NOT NULL CHECK (band >= 0),                 -- 0, 1, ... from the top
    row0       INTEGER NOT NULL,                                   -- first tile row
    row1       INTEGER NOT NULL,                                   -- behind the last tile row
    pairs      INTEGER NOT NULL CHECK (pairs >= 0),                -- in this band
    PRIMARY KEY (tile_table, band)
) STRICT, WITHOUT ROWID;

-- The arrays of tables and bands. An empty array has no row.
CREATE TABLE tile_segment (
    tile_table INTEGER NOT NULL REFERENCES tile_table (id) ON DELETE CASCADE, -- whose
    band       INTEGER NOT NULL CHECK (band >= -1),                -- tile_band.band; -1: the table's own arrays
    name       TEXT NOT NULL CHECK (name IN ('chunks', 'visible_slot', 'visible_row', 'tile_count', 'tile_bytes', 'rank_delta')),
                                                                   -- the first three have band -1
    segment    INTEGER NOT NULL CHECK (segment >= 0),              -- 0, 1, ...: 64 MiB each, the last one shorter
    hash       BLOB NOT NULL REFERENCES blob (hash),               -- its bytes
    raw_bytes  INTEGER NOT NULL CHECK (raw_bytes >= 0),            -- as the blob says
    PRIMARY KEY (tile_table, band, name, segment)
) STRICT, WITHOUT ROWID;

CREATE TABLE image (
    camera       TEXT NOT NULL,                                    -- camera.name
    device_kind  TEXT NOT NULL,                                    -- "cpu", "cuda", "cuda-fast": pixels are alike on one kind only
    profile      TEXT NOT NULL,                                    -- as in tile_table
    antialiased  INTEGER NOT NULL CHECK (antialiased IN (0, 1)),   -- as in tile_table
    near_m       REAL NOT NULL,                                    -- as in tile_table
    background_r REAL NOT NULL,                                    -- 0..1
    background_g REAL NOT NULL,                                    -- 0..1
    background_b REAL NOT NULL,                                    -- 0..1
    width        INTEGER NOT NULL,                                 -- of the picture in pixels
    height       INTEGER NOT NULL,                                 -- of the picture in pixels
    key          BLOB NOT NULL CHECK (length(key) = 16),           -- of what it was made from
    pixels       BLOB NOT NULL CHECK (length(pixels) = 16),        -- hash of float32 [height][width][r g b a]
    visible      INTEGER NOT NULL CHECK (visible >= 0),            -- as in tile_table
    pairs        INTEGER NOT NULL CHECK (pairs >= 0),              -- as in tile_table
    psnr         REAL,                                             -- dB against the photo; NULL: no photo
    ssim         REAL,                                             -- against the photo; NULL: no photo
    path         TEXT NOT NULL,                                    -- file written, relative to the manifest where below it; "": none
    format       TEXT NOT NULL,                                    -- "png", "png16", "npy", "none"
    PRIMARY KEY (camera, device_kind)
) STRICT, WITHOUT ROWID;

-- Views for other programs: what is current, without knowing how it is kept.
CREATE VIEW plane_data AS                                          -- planes of the current layers, a row for each segment
SELECT role AS layer,                                              -- kind: "baked"
       ordinal, chunk.name AS chunk, count AS rows,                -- of the chunk
       plane.name AS plane, type, components, segment,             -- of the plane
       elem, blob.raw_bytes AS raw_bytes, packed, hash             -- of the blob
FROM stage_output JOIN chunk USING (layer) JOIN plane ON plane.chunk = chunk.id JOIN plane_segment ON plane_segment.plane = plane.id
     JOIN blob USING (hash);

CREATE VIEW tile_data AS                                           -- arrays of the tile tables, a row for each segment
SELECT tile_table,                                                 -- tile_table.id
       band, name, segment, elem, blob.raw_bytes AS raw_bytes, packed, hash
FROM tile_segment JOIN blob USING (hash);

CREATE VIEW digest_line AS                                         -- SCHEMA.md, "Digests": what layers and tables are hashed over
SELECT 'layer' AS kind, role AS name,                              -- of the line that kiln-verify --digest prints
       ordinal AS major, plane.name AS minor, segment,             -- lines are in the order of these
       hex(chunk.name) || ' ' || count || ' ' || ifnull(hex(plane.name) || ' ' || type || ' ' || components || ' ', '') || hex(hash)
           || char(10) AS line                                     -- ends with its line feed
FROM stage_output JOIN chunk USING (layer) LEFT JOIN plane ON plane.chunk = chunk.id LEFT JOIN plane_segment ON plane_segment.plane = plane.id
UNION ALL
SELECT 'table', name, band, part, segment, line || char(10)
FROM (SELECT id, replace(replace(camera, '%', '%25'), ' ', '%20') || ':' || profile || iif(antialiased, '_aa', '') || printf(':near=%g', near_m) AS name
      FROM tile_table)
     JOIN (SELECT id, -1 AS band, '' AS part, 0 AS segment, width || ' ' || height || ' ' || visible || ' ' || pairs AS line FROM tile_table
           UNION ALL SELECT tile_table, band, '', 0, row0 || ' ' || row1 || ' ' || pairs FROM tile_band
           UNION ALL SELECT tile_table, band, name, segment, name || ' ' || hex(hash) FROM tile_segment) USING (id);

-- LATER TABLES. What stands from here to the next line of capitals came while the schema version was 1. A manifest of version 1 may lack it,
-- which means the same as an empty table; in version 2 it is there.
CREATE TABLE photo_mask (
    camera TEXT PRIMARY KEY REFERENCES camera (name) ON DELETE CASCADE, -- whose photo; a photo without a mask has no row
    path   TEXT NOT NULL,                                          -- absolute; a picture: what is black in it is left out
    width  INTEGER NOT NULL CHECK (width >= 0),                    -- as the file says; it is fitted to the photo
    height INTEGER NOT NULL CHECK (height >= 0)                    -- as the file says
) STRICT, WITHOUT ROWID;

-- VERSION 2. Levels of detail: layers of the kind "levels", whose chunks are named NODE@LEVEL, have parents and errors.
PRAGMA user_version = 2;

-- What a layer of levels stands for: one row for each.
CREATE TABLE level_origin (
    layer       INTEGER PRIMARY KEY REFERENCES layer (id) ON DELETE CASCADE, -- of the kind "levels"
    baked       BLOB NOT NULL CHECK (length(baked) = 16),          -- digest of the layer "baked" whose chunks are its finest level
    profile     TEXT NOT NULL,                                     -- what errors were measured with; as in tile_table
    antialiased INTEGER NOT NULL CHECK (antialiased IN (0, 1)),    -- as in tile_table
    near_m      REAL NOT NULL                                      -- as in tile_table
) STRICT;

-- What is lost when a chunk of a layer of levels is drawn. A chunk whose errors were not measured has no row.
CREATE TABLE level_error (
    chunk  INTEGER PRIMARY KEY REFERENCES chunk (id) ON DELETE CASCADE, -- whose
    step   INTEGER NOT NULL CHECK (step BETWEEN -1000 AND 1000),   -- the first error is of a footprint of 2^step scene units
    errors BLOB NOT NULL CHECK (length(errors) BETWEEN 4 AND 32 AND length(errors) % 4 = 0) -- little-endian float32, of 2^step, 2^(step+1), ...
) STRICT;

DROP VIEW digest_line;
CREATE VIEW digest_line AS                                         -- SCHEMA.md, "Digests": what layers and tables are hashed over
SELECT 'layer' AS kind, role AS name,                              -- of the line that kiln-verify --digest prints
       ordinal AS major, plane.name AS minor, segment,             -- lines are in the order of these
       hex(chunk.name) || ' ' || count || ' ' || ifnull(hex(plane.name) || ' ' || type || ' ' || components || ' ', '') || hex(hash)
           || char(10) AS line                                     -- ends with its line feed
FROM stage_output JOIN chunk USING (layer) LEFT JOIN plane ON plane.chunk = chunk.id LEFT JOIN plane_segment ON plane_segment.plane = plane.id
UNION ALL
SELECT 'layer', role, ordinal, '', 0,                              -- of levels: what else is said of a chunk, before its planes
       hex(chunk.name) || ' in ' || hex(parent) || ifnull(' ' || step || ' ' || hex(errors), '') || char(10)
FROM stage_output JOIN level_origin USING (layer) JOIN chunk USING (layer) LEFT JOIN level_error ON level_error.chunk = chunk.id
UNION ALL
SELECT 'layer', role, -1, '', 0,                                   -- of levels: what they stand for, before all chunks
       'of ' || hex(baked) || ' ' || hex(profile) || ' ' || antialiased || ' ' || printf('%g', near_m) || char(10)
FROM stage_output JOIN level_origin USING (layer)
UNION ALL
SELECT 'table', name, band, part, segment, line || char(10)
FROM (SELECT id, replace(replace(camera, '%', '%25'), ' ', '%20') || ':' || profile || iif(antialiased, '_aa', '') || printf(':near=%g', near_m) AS name
      FROM tile_table)
     JOIN (SELECT id, -1 AS band, '' AS part, 0 AS segment, width || ' ' || height || ' ' || visible || ' ' || pairs AS line FROM tile_table
           UNION ALL SELECT tile_table, band, '', 0, row0 || ' ' || row1 || ' ' || pairs FROM tile_band
           UNION ALL SELECT tile_table, band, name, segment, name || ' ' || hex(hash) FROM tile_segment) USING (id);
