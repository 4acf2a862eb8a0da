// The instruction set that this build traces: the only place that asks which machine it is compiled for.
#pragma once

#if defined(__x86_64__)
#include "x86_64/detour/detour.h"
#include "x86_64/errno_location.h"
#include "x86_64/native.h"
#include "x86_64/x86_64.h"
namespace ktrace::arch {
using Host = X86_64;
using HostDetour = X86_64Detour;
using HostErrno = X86_64Errno;
using HostNative = X86_64Native;
} // namespace ktrace::arch
#elif defined(__aarch64__)
#include "arm64/arm64.h"
#include "arm64/detour/detour.h"
#include "arm64/errno_location.h"
#include "arm64/native.h"
namespace ktrace::arch {
using Host = Arm64;
using HostDetour = Arm64Detour;
using HostErrno = Arm64Errno;
using HostNative = Arm64Native;
} // namespace ktrace::arch
#else
#error "ktrace traces x86-64 and arm64"
#endif
