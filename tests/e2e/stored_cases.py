"""The python of tests/e2e/stored.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import sqlite3, sys


def spoil(path, statement, fresh):
    db = sqlite3.connect(path, isolation_level=None)

    def unit(stage, name):
        return "(SELECT id FROM unit WHERE stage = '%s' AND name LIKE '%s' ORDER BY id DESC LIMIT 1)" % (stage, name)

    # the bytes of one output in the place of another's
    def put(stage, name, output, of_stage, of_name, of_output):
        return (
            "UPDATE unit_output SET (hash, raw_bytes, elem) = (SELECT hash, raw_bytes, elem FROM unit_output "
            "WHERE unit = %s AND name = '%s')"
            " WHERE unit = %s AND name = '%s'" % (unit(of_stage, of_name), of_output, unit(stage, name), output)
        )

    def cut(raw_bytes, *outputs):
        return (
            put(*outputs)
            .replace("raw_bytes, elem)", "raw_bytes, segment)")
            .replace("raw_bytes, elem FROM", "%d, 0 FROM" % raw_bytes)
        )

    def without(output):
        chunks = "SELECT id FROM unit WHERE stage = 'chunk' AND name LIKE 'chunk %'"
        return "DELETE FROM unit_output WHERE name = '" + output + "' AND unit IN (" + chunks + ")"

    def too_many_visible():
        return (
            "UPDATE unit SET counters = json_set(counters, '$.visible', 1 << 61)"
            " WHERE stage = 'tiles' AND name LIKE 'pairs of cam1'"
        )

    def outputs_of_later_units():
        return (
            "INSERT INTO unit_output SELECT (SELECT max(id) FROM unit) + later.id, o.name, o.segment, o.hash,"
            " o.raw_bytes, o.elem"
            " FROM unit later, unit_output o WHERE o.unit IN (%s, %s)"
            % (unit("chunk", "plan"), unit("chunk", "chunk %"))
        )

    before = db.total_changes
    db.execute(eval(statement))
    if db.total_changes == before:
        sys.exit("nothing was changed")
    if fresh != "fresh":
        db.execute("UPDATE stage SET input_key = randomblob(16)")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
