/* Passed on, with the groups of permissions that only kernel sources know. */
#ifndef KTRACE_LINUX_STAT_H
#define KTRACE_LINUX_STAT_H

#include <sys/stat.h>

#define S_IRUGO (S_IRUSR | S_IRGRP | S_IROTH)
#define S_IWUGO (S_IWUSR | S_IWGRP | S_IWOTH)
#define S_IXUGO (S_IXUSR | S_IXGRP | S_IXOTH)
#define S_IRWXUGO (S_IRWXU | S_IRWXG | S_IRWXO)

#endif
