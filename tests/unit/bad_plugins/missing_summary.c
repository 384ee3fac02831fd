#define PLUGIN_NAME "missing_summary"
#define TABLE_SUMMARY NULL
#include "schedule_table.h"
