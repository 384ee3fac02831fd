#define PLUGIN_NAME "no_marker"
#include "schedule_table.h"
