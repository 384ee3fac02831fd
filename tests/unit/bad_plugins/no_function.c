__attribute__((visibility("default"))) const char no_plugin = 1;
