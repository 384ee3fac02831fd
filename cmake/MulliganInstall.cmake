# Installs the program and the plugins: component runtime (bin/mulligan, lib/mulligan/plugins), and documents. The component
# sdk is include's.
install(TARGETS mulligan mulligan_plugin_check RUNTIME DESTINATION bin COMPONENT runtime)
# The program looks for its plugins in <its folder>/../lib/mulligan/plugins, whatever the distribution calls lib.
get_property(plugins GLOBAL PROPERTY MULLIGAN_PLUGIN_TARGETS)
foreach(plugin ${plugins})
  mulligan_carried_libraries(${plugin} ..)
endforeach()
install(TARGETS ${plugins} LIBRARY DESTINATION lib/mulligan/plugins COMPONENT runtime)
if(TARGET mulligan_cuda_emulated)
  mulligan_carried_libraries(mulligan_cuda_emulated ..)
  install(TARGETS mulligan_cuda_emulated LIBRARY DESTINATION lib/mulligan/devices COMPONENT runtime)
endif()

# Component documents: documents, licence, the shipped configurations, the manual page and completions. The last three
# are printed by the program that was built, so that they agree with it.
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE DESTINATION share/doc/mulligan COMPONENT documents)
install(DIRECTORY docs/ DESTINATION share/doc/mulligan/docs COMPONENT documents)
# Not the scripts next to them, which work in the source tree.
install(DIRECTORY configs/ DESTINATION share/mulligan/configs COMPONENT documents FILES_MATCHING PATTERN "*.toml")
set(printed "${PROJECT_BINARY_DIR}/printed")
foreach(one "completion man;mulligan.1" "completion bash;mulligan" "completion zsh;_mulligan")
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
