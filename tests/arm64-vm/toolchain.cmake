# A build for arm64 on another host: cmake --toolchain tests/arm64-vm/toolchain.cmake, with what ./setup has fetched in the
# folder that the environment's KTRACE_ARM64_CACHE names.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

set(KTRACE_ARM64_CACHE "$ENV{KTRACE_ARM64_CACHE}" CACHE PATH "what tests/arm64-vm/setup has filled")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KTRACE_ARM64_CACHE)
if(NOT EXISTS "${KTRACE_ARM64_CACHE}/sysroot/usr/include")
  message(FATAL_ERROR "KTRACE_ARM64_CACHE (${KTRACE_ARM64_CACHE}) is no folder that tests/arm64-vm/setup has filled")
endif()

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT "${KTRACE_ARM64_CACHE}/sysroot")

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_LIBDIR} "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
