#define PLUGIN_NAME "twin"
#define TABLE_SUMMARY "another test"
#include "schedule_table.h"
