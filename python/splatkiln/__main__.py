"""python3 -m splatkiln MANIFEST -- reads and checks every layer and tile table of a bake, and prints their lines of kiln-verify --digest.
Of pictures it prints nothing."""
import sys

from splatkiln import Bake, BakeError, LibraryError


def main(path: str) -> None:
    """Prints what kiln-verify --digest prints of layers and tile tables; every array is read and checked."""
    lines = []
    with Bake(path) as bake:
        for (kind,) in bake._db.rows("SELECT role FROM stage_output WHERE layer IS NOT NULL ORDER BY role", "t"):
            layer = bake.layer(kind)
            for chunk in layer.chunks:
                for name in chunk.planes:
                    layer.plane(chunk, name)
            lines.append(f"layer {kind} {layer.digest.hex()}")
        tables = bake.tile_tables()
        for table in tables:
            table.lists()
            if bake.stage_state("tiles") == "fresh":
                table.visible_rows(bake.layer(), bake.layer("levels") if any("@" in name for name in table.chunks()) else None)
            lines.append(f"table {table.name} {table.digest.hex()}")
    print("\n".join(sorted(lines)))


if __name__ == "__main__":
    try:
        if len(sys.argv) != 2:
            sys.exit("usage: python3 -m splatkiln MANIFEST")
        main(sys.argv[1])
    except (BakeError, LibraryError) as e:
        sys.exit(f"splatkiln: {e}")
