# CPack runs this on the tree of the Debian package before it is packed: what Debian's policy asks for and other installations
# do not have.
file(GLOB root "${CPACK_TEMPORARY_DIRECTORY}/ALL_COMPONENTS_IN_ONE${CPACK_PACKAGING_INSTALL_PREFIX}")
if(NOT root)
  message(FATAL_ERROR "The tree of the Debian package is not below ${CPACK_TEMPORARY_DIRECTORY}.")
endif()
set(doc "${root}/share/doc/mulligan")
string(TIMESTAMP day "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, where that is set
string(TIMESTAMP year "%Y" UTC)
file(WRITE "${doc}/changelog"
"mulligan (${CPACK_DEBIAN_PACKAGE_VERSION}) unstable; urgency=medium

  * Release ${CPACK_PACKAGE_VERSION}; what is new stands in CHANGELOG.md.

 -- ${CPACK_PACKAGE_CONTACT}  ${day}
")
file(WRITE "${doc}/copyright"
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: mulligan

Files: *
Copyright: ${year} The mulligan authors
License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
foreach(file "${doc}/changelog" "${root}/share/man/man1/mulligan.1")
  execute_process(COMMAND gzip -9n "${file}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
