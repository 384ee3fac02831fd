# Installs the program, the plugins and the SDK with its CMake package (find_package(mulligan)).
# Components: runtime (bin/mulligan, lib/mulligan/plugins) and sdk (headers and CMake package; needs nothing built).
include(CMakePackageConfigHelpers)

install(TARGETS mulligan RUNTIME DESTINATION bin COMPONENT runtime)
# The program looks for its plugins in <its folder>/../lib/mulligan/plugins, whatever the distribution calls lib.
get_property(plugins GLOBAL PROPERTY MULLIGAN_PLUGIN_TARGETS)
install(TARGETS ${plugins} LIBRARY DESTINATION lib/mulligan/plugins COMPONENT runtime)

install(DIRECTORY "${PROJECT_SOURCE_DIR}/plugins/include/mulligan" DESTINATION include COMPONENT sdk)
install(TARGETS mulligan_sdk EXPORT mulligan COMPONENT sdk)
install(EXPORT mulligan NAMESPACE mulligan:: FILE mulliganTargets.cmake DESTINATION lib/cmake/mulligan
  COMPONENT sdk)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/mulliganConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/mulliganConfig.cmake" INSTALL_DESTINATION lib/cmake/mulligan)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/mulliganConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/mulliganConfig.cmake" "${PROJECT_BINARY_DIR}/mulliganConfigVersion.cmake"
  DESTINATION lib/cmake/mulligan COMPONENT sdk)
