/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries that cannot be used as an adapter, each in its own way; ODD selects the way when this file is compiled.
 */
#include <qkcts/adapter.h>

#include <stdio.h>
#include <stdlib.h>

#define ODD_NO_SYMBOL 1
#define ODD_MAJOR 2
#define ODD_SHORT 3
#define ODD_NULL_FUNCTION 4
#define ODD_NULL_TABLE 5
#define ODD_JSON 6
#define ODD_FIELD 7
#define ODD_LOAD_CRASH 8
#define ODD_UNAVAILABLE 9

#if ODD == ODD_NO_SYMBOL
int qkcts_something_else(void);
int qkcts_something_else(void) {
  return 1;
}
#else

#if ODD == ODD_JSON
#define DESCRIPTION "{\"name\": \"odd\","
#elif ODD == ODD_FIELD
#define DESCRIPTION                                                                                              \
  "{\"name\": \"odd\", \"version\": \"1\", \"formats\": [\"binary32\"], \"stages\": [\"output\"], \"profile\": " \
  "{\"binary32\": \"f32\"},"                                                                                     \
  " \"supports\": {\"rope.flavour\": [\"half_split\"]}}"
#else
#define DESCRIPTION                                                                                              \
  "{\"name\": \"odd\", \"version\": \"1\", \"formats\": [\"binary32\"], \"stages\": [\"output\"], \"profile\": " \
  "{\"binary32\": \"f32\"}}"
#endif

#if ODD == ODD_LOAD_CRASH
__attribute__((constructor)) static void crash(void) {
  abort();
}
#endif

static qkcts_status describe(qkcts_text* json) {
  json->length = (uint32_t)(sizeof DESCRIPTION - 1);
  (void)snprintf(json->text, json->capacity, "%s", DESCRIPTION);
  return QKCTS_OK;
}

static qkcts_status probe(qkcts_text* reason) {
#if ODD == ODD_UNAVAILABLE
  (void)snprintf(reason->text, reason->capacity, "no such device here");
  return QKCTS_UNAVAILABLE;
#else
  (void)reason;
  return QKCTS_OK;
#endif
}

static qkcts_status prepare(const char* options, void** state, qkcts_text* message) {
  (void)options;
  (void)state;
  (void)message;
  return QKCTS_OK;
}

#if ODD != ODD_NULL_FUNCTION
static qkcts_status run(const qkcts_run_args* args) {
  (void)args;
  return QKCTS_INTERNAL;
}
#endif

static void release(void* state) {
  (void)state;
}

static const qkcts_adapter_table table = {
#if ODD == ODD_SHORT
    offsetof(qkcts_adapter_table, run),
#else
    sizeof(qkcts_adapter_table),
#endif
#if ODD == ODD_MAJOR
    QKCTS_ADAPTER_ABI_MAJOR + 1,
#else
    QKCTS_ADAPTER_ABI_MAJOR,
#endif
    QKCTS_ADAPTER_ABI_MINOR,
    0,
    describe,
    probe,
    prepare,
#if ODD == ODD_NULL_FUNCTION
    NULL,
#else
    run,
#endif
    release};

static const qkcts_adapter_table* const table_or_null =
#if ODD == ODD_NULL_TABLE
    0 ? &table : NULL;
#else
    &table;
#endif

const qkcts_adapter_table* qkcts_adapter(void) {
  return table_or_null;
}
#endif
