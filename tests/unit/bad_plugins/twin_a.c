#define PLUGIN_NAME "twin"
#include "schedule_table.h"
