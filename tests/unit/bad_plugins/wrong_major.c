#define PLUGIN_NAME "wrong_major"
#define TABLE_MAJOR 9
#include "schedule_table.h"
