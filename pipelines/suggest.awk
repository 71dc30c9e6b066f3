#!/usr/bin/awk -f
# suggest.awk WORD KNOWN... -- one sentence about a variable of make's command line that no stage has: the nearest known
# ones, by edit distance; a known one that ends in _WORD counts as near, because WORD alone is ambiguous there.
function min(a, b) { return a < b ? a : b }
function edits(a, b,    i, j, row, diagonal, above) {
    for (j = 0; j <= length(b); j++) row[j] = j
    for (i = 1; i <= length(a); i++) {
        diagonal = row[0]
        row[0] = i
        for (j = 1; j <= length(b); j++) {
            above = row[j]
            row[j] = min(diagonal + (substr(a, i, 1) != substr(b, j, 1)), min(above, row[j - 1]) + 1)
            diagonal = above
        }
    }
    return row[length(b)]
}
BEGIN {
    word = ARGV[1]
    best = int(length(word) / 3) + 1 # more edits than a third: another word, not a slip
    for (k = 2; k < ARGC; k++) {
        n = edits(toupper(word), ARGV[k])
        tail = substr(ARGV[k], length(ARGV[k]) - length(word))
        if (tail == "_" word) n = 0
        if (n > best) continue
        if (n < best) near = ""
        best = n
        near = near (near == "" ? "" : " or ") ARGV[k]
    }
    if (near != "") {
        print "these stages have no option " word "; did you mean " near "?"
        exit
    }
    print "these stages have no option " word "; `kiln-STAGE --help` lists them, --min-opacity is MIN_OPACITY here"
}
