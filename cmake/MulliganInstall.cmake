# Installs the program, the plugins and the SDK with its CMake package (find_package(mulligan)).
