/* doctor -- the parts of kiln-doctor: each looks at one side of this machine, says in a line what
 * it found, puts the same into the report, and leaves a finding where something should be repaired.
 */
#ifndef KILN_STAGES_DOCTOR_H
#define KILN_STAGES_DOCTOR_H

#include "base/status.h"
#include "stages/engine/devices/devices.h"

#include <jansson.h>
#include <stdbool.h>

typedef struct {
    json_t *report;   /* borrowed: what --json prints */
    json_t *findings; /* borrowed, a part of it: objects with kind, status, sentence */
    bool quiet;       /* no lines on stdout, they are for people */
    bool no_memory;   /* something could not be put into the report */
    kiln_error worst; /* status KILN_OK: nothing is ill */
} kiln_doctor;

typedef enum {
    KILN_NOTE,    /* worth knowing */
    KILN_WARNING, /* works, but not as well as it could, or not for long */
    KILN_ILL,     /* something does not work; status says what kind of thing */
} kiln_doctor_finding;

void kiln_doctor_line(const kiln_doctor *d, const char *fmt, ...) KILN_PRINTF(2, 3);
/* value: taken over; NULL counts as no memory. */
void kiln_doctor_set(kiln_doctor *d, const char *key, json_t *value);
/* One sentence: what is wrong, and how to repair it. The first ILL one is the error that the
 * program ends with. */
void kiln_doctor_find(kiln_doctor *d, kiln_doctor_finding kind, kiln_status status, const char *fmt,
                      ...) KILN_PRINTF(4, 5);

/* ---- the parts ------------------------------------------------------------------------------- */
void kiln_doctor_libraries(kiln_doctor *d); /* versions, compiled and found */
void kiln_doctor_machine(kiln_doctor *d);   /* CPUs, memory, limits */
/* Disk and file system of a folder or manifest; NULL: the current folder. A manifest is opened,
 * with its lock and scratch. */
void kiln_doctor_place(kiln_doctor *d, const char *manifest);
/* Versions of CUDA, the GPUs, and whether each visible one computes. */
kiln_status kiln_doctor_gpus(kiln_doctor *d, kiln_error *err) KILN_MUST_CHECK;

/* ---- one GPU --------------------------------------------------------------------------------- */
/* Lets a child of its own, which sees this GPU alone, compute something on it and compare. text:
 * what it found, a sentence. false: it does not work, or did not answer within timeout_ms. */
bool kiln_doctor_probe(const kiln_device *device, unsigned timeout_ms, char *text, size_t size);
/* What that child does: opens CUDA's device 0, takes memory, runs an operation, compares with the
 * CPU; text: the GPU's name. */
kiln_status kiln_doctor_probe_here(char *text, size_t size, kiln_error *err) KILN_MUST_CHECK;
#define KILN_DOCTOR_PROBE "--probe"

#endif
