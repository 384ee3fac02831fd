/* A schedule plugin in plain C, sound unless a file that includes this changes one of the macros first. */
#include <mulligan/schedule.h>
#include <stddef.h>

#ifndef PLUGIN_NAME
#error "define PLUGIN_NAME, a string"
#endif
#ifndef TABLE_MAGIC
#define TABLE_MAGIC MLG_ABI_MAGIC
#endif
#ifndef TABLE_MAJOR
#define TABLE_MAJOR MLG_ABI_MAJOR
#endif
#ifndef TABLE_MINOR
#define TABLE_MINOR MLG_ABI_MINOR
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE sizeof(mlg_schedule_table)
#endif
#ifndef TABLE_KIND
#define TABLE_KIND MLG_SCHEDULE
#endif
#ifndef TABLE_RATE
#define TABLE_RATE constant_rate
#endif
#ifndef TABLE_SUMMARY
#define TABLE_SUMMARY "a test"
#endif

#define EXPORTED __attribute__((visibility("default")))

static mlg_error create(const mlg_host* host, const mlg_config* config, void** instance) {
  (void)host;
  (void)config;
  *instance = NULL;
  return NULL;
}
static void destroy(void* instance) {
  (void)instance;
}
static __attribute__((unused)) mlg_error constant_rate(void* instance, const mlg_progress* progress,
                                                       double base_lr, mlg_rate* out) {
  (void)instance;
  (void)progress;
  out->lr = base_lr;
  out->cycle = 0;
  return NULL;
}

static const mlg_schedule_table table = {{TABLE_MAGIC, TABLE_MAJOR, TABLE_MINOR, TABLE_SIZE, TABLE_KIND,
                                          PLUGIN_NAME, TABLE_SUMMARY, 0, 0, NULL, 0, NULL},
                                         create,
                                         destroy,
                                         TABLE_RATE};

EXPORTED const mlg_plugin_header* mlg_plugin(void) {
  return &table.header;
}
