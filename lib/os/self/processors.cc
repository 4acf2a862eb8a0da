#include "os/self/processors.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ktrace::os {

bool synchronize_processors() { return ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0; }

} // namespace ktrace::os
