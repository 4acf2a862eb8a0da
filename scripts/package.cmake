# The Debian package, made of what `cmake --install` installs: `cpack -G DEB` in the build tree, which builds nothing.
# Another maintainer, for a package of one's own: cpack -D CPACK_DEBIAN_PACKAGE_MAINTAINER='NAME <ADDRESS>'.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME changelog)

set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "ktrace attaches to a running process, or starts one, and puts probes on its
functions, on single instructions, on lines of the source and on data. It shows
arguments by name and type, return values, durations, registers, variables and
stacks, counts them, or changes them, and runs plugins in the style of kprobes
modules. It needs neither root nor a restart of the traced process, and leaves
nothing in it.")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "ktrace maintainers <maintainers@ktrace.invalid>")
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
if(CMAKE_CROSSCOMPILING) # dpkg-shlibdeps knows the libraries of this machine alone
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  file(STRINGS "${KTRACE_ARM64_CACHE}/packages" libraries
       REGEX "^(libc6|libdw1|libelf1|libfmt[0-9]+|libgcc-s1|liblzma5|libspdlog[0-9.]+|libstdc\\+\\+6) ")
  list(TRANSFORM libraries REPLACE " (.*)" " (>= \\1)")
  list(JOIN libraries ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libdebuginfod1) # is loaded only where DEBUGINFOD_URLS asks for it
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gcc | c-compiler, libc6-dev") # of ktrace plugin build
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
include(CPack)
