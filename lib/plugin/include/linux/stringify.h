/* A macro's value as a text. */
#ifndef KTRACE_LINUX_STRINGIFY_H
#define KTRACE_LINUX_STRINGIFY_H

#define __stringify_1(...) #__VA_ARGS__
#define __stringify(...) __stringify_1(__VA_ARGS__)

#endif
