#define PLUGIN_NAME "another"
#include "schedule_table.h"
