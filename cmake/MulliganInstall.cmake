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
install(FILES "${CMAKE_CURRENT_LIST_DIR}/MulliganCudaSources.cmake" "${PROJECT_BINARY_DIR}/mulliganConfig.cmake" "${PROJECT_BINARY_DIR}/mulliganConfigVersion.cmake"
  DESTINATION lib/cmake/mulligan COMPONENT sdk)

# Component documents: documents, licence, the shipped configurations, the manual page and completions. The last three
# are printed by the program that was built, so that they agree with it.
install(FILES README.md LICENSE DESTINATION share/doc/mulligan COMPONENT documents)
install(DIRECTORY docs/ DESTINATION share/doc/mulligan/docs COMPONENT documents)
install(DIRECTORY configs/ DESTINATION share/mulligan/configs COMPONENT documents USE_SOURCE_PERMISSIONS)
set(printed "${PROJECT_BINARY_DIR}/printed")
foreach(one "man;mulligan.1" "completion bash;mulligan" "completion zsh;_mulligan")
  list(GET one 0 arguments)
  list(GET one 1 file)
  separate_arguments(arguments)
  list(JOIN arguments "\" \"" arguments)
  install(CODE "file(MAKE_DIRECTORY \"${printed}\")
    execute_process(COMMAND \"$<TARGET_FILE:mulligan>\" \"${arguments}\" OUTPUT_FILE \"${printed}/${file}\"
                    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT documents)
endforeach()
install(FILES "${printed}/mulligan.1" DESTINATION share/man/man1 COMPONENT documents)
install(FILES "${printed}/mulligan" DESTINATION share/bash-completion/completions COMPONENT documents)
install(FILES "${printed}/_mulligan" DESTINATION share/zsh/vendor-completions COMPONENT documents)
