/* embed -- puts a file of the repository into a program, byte for byte. The path is relative to the
 * repository's root, where every build runs. .incbin is unseen by -MMD: a make rule says that the
 * object depends on the file. */
#ifndef KILN_BASE_EMBED_H
#define KILN_BASE_EMBED_H

/* Defines the symbol, which a header declares as `extern const char symbol[]`: the file and a NUL.
 * Outside of functions. */
#define KILN_EMBED(symbol, path)                       \
    __asm__(".pushsection .rodata\n"                   \
            ".global " symbol "\n"                     \
            ".type " symbol ", @object\n" symbol ":\n" \
            ".incbin \"" path "\"\n"                   \
            ".byte 0\n"                                \
            ".size " symbol ", . - " symbol "\n"       \
            ".popsection\n")

#endif
