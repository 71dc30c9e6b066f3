# .incbin is unseen by -MMD.
$O/stages/report/report_assets.c.o: stages/report/report.css stages/report/report.js
