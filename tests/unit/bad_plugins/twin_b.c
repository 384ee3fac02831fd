#define PLUGIN_NAME "twin"
#define TABLE_VERSION "2.0"
#include "schedule_table.h"
