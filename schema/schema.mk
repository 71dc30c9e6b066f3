# .incbin is unseen by -MMD.
$O/schema/manifest_sql.c.o: schema/manifest.sql schema/part.sql
