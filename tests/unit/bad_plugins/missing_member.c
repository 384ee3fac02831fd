#define PLUGIN_NAME "missing_member"
#define TABLE_RATE NULL
#include "schedule_table.h"
