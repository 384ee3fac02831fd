#define PLUGIN_NAME "missing_version"
#define TABLE_VERSION NULL
#include "schedule_table.h"
