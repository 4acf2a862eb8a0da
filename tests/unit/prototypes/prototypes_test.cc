// The table of the C library's functions: all of it is read, and its EXPRs are EXPRs.
#include "prototypes/prototypes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <set>

#include <gtest/gtest.h>

#include "output/enumeration.h"
#include "program/expr/expr.h"

namespace ktrace::prototypes {
namespace {

using value::Type;

const Type &type_of(const char *function, std::size_t parameter) {
    return *prototype_named(function)->function.parameters.at(parameter).type;
}

std::string names(const Type &type, std::int64_t value) {
    std::string out;
    return output::append_enumerators(out, type, value) ? out : "-";
}

TEST(Prototypes, AreReadWithTheirTypes) {
    const Prototype *read = prototype_named("read");
    ASSERT_TRUE(read);
    EXPECT_TRUE(read->sets_errno);
    EXPECT_EQ(read->function.result->name, "ssize_t");
    ASSERT_EQ(read->function.parameters.size(), 3U);
    EXPECT_EQ(read->function.parameters[1].name, "buf");
    EXPECT_EQ(type_of("read", 1).kind, Type::Kind::pointer);
    EXPECT_EQ(type_of("read", 2).size, 8U);
    ASSERT_EQ(read->buffers.size(), 1U);
    EXPECT_EQ(read->buffers[0].parameter, 1U);
    EXPECT_EQ(read->buffers[0].length, "retval");
    EXPECT_TRUE(read->buffers[0].is_written);

    const Prototype *abort = prototype_named("abort");
    EXPECT_FALSE(abort->function.result);
    EXPECT_TRUE(abort->function.parameters.empty());
    EXPECT_TRUE(prototype_named("open")->function.variadic);
    EXPECT_EQ(type_of("execve", 1).target->target->name, "char");
    EXPECT_TRUE(type_of("stat", 1).target->incomplete);
    EXPECT_EQ(type_of("pow", 0).kind, Type::Kind::floating);
}

/// A word that is not known would be a structure: as a value it has no size.
TEST(Prototypes, NameOnlyTypesThatAreKnown) {
    std::set<std::string> seen;
    ASSERT_GT(all().size(), 300U);
    for (const Prototype *each : all()) {
        const symbols::Function &function = each->function;
        EXPECT_TRUE(seen.insert(function.name).second) << function.name << " is there twice";
        if (function.result) {
            EXPECT_NE(function.result->size, 0U) << function.name;
        }
        std::set<std::string> parameters;
        for (const symbols::Parameter &p : function.parameters) {
            EXPECT_NE(p.type ? p.type->size : 0, 0U) << function.name << ": " << p.name;
            EXPECT_TRUE(!p.name.empty() && parameters.insert(p.name).second) << function.name << ": " << p.name;
        }
        EXPECT_TRUE(function.result || !each->sets_errno) << function.name;
    }
}

TEST(Prototypes, HaveBuffersThatArePointersWithALength) {
    for (const Prototype *each : all())
        for (const Buffer &buffer : each->buffers) {
            EXPECT_EQ(each->function.parameters[buffer.parameter].type->kind, Type::Kind::pointer)
                << each->function.name;
            EXPECT_TRUE(buffer.is_written || !buffer.length.empty()) << each->function.name;
            if (!buffer.length.empty()) {
                EXPECT_TRUE(program::parse_expr(buffer.length)) << each->function.name;
            }
        }
}

TEST(Prototypes, AreFoundByEachOfTheirNames) {
    const Prototype *open = prototype_named("open");
    for (const char *name : {"open64", "__open", "__open64", "__libc_open", "open@@GLIBC_2.2.5", "__libc_open64"})
        EXPECT_EQ(prototype_named(name), open) << name;
    for (const char *name : {"", "64", "__", "open65", "opener"}) EXPECT_FALSE(prototype_named(name)) << name;
}

TEST(Prototypes, NameFlagsAndTheNumbersAmongThem) {
    const Type &flags = type_of("open", 1);
    EXPECT_EQ(names(flags, O_RDONLY), "O_RDONLY");
    EXPECT_EQ(names(flags, O_RDONLY | O_CLOEXEC), "O_RDONLY|O_CLOEXEC");
    EXPECT_EQ(names(flags, O_CREAT), "O_RDONLY|O_CREAT");
    EXPECT_EQ(names(flags, O_RDWR | O_CREAT | O_TRUNC), "O_RDWR|O_CREAT|O_TRUNC");
    EXPECT_EQ(names(flags, O_RDWR | 0x40000000), "O_RDWR|0x40000000");
    EXPECT_EQ(names(type_of("mmap", 2), PROT_NONE), "PROT_NONE");
    EXPECT_EQ(names(type_of("mmap", 2), PROT_READ | PROT_WRITE), "PROT_READ|PROT_WRITE");
    EXPECT_EQ(names(type_of("mmap", 3), MAP_PRIVATE | MAP_ANONYMOUS), "MAP_PRIVATE|MAP_ANONYMOUS");
    EXPECT_EQ(names(type_of("socket", 1), SOCK_STREAM | SOCK_CLOEXEC), "SOCK_STREAM|SOCK_CLOEXEC");
    EXPECT_EQ(names(type_of("socket", 0), AF_INET), "AF_INET");
    EXPECT_EQ(names(type_of("openat", 0), AT_FDCWD), "AT_FDCWD");
    EXPECT_EQ(names(type_of("openat", 0), 3), "-");
    EXPECT_EQ(names(*prototype_named("pthread_mutex_trylock")->function.result, EBUSY), "EBUSY");
    EXPECT_EQ(names(*prototype_named("pthread_mutex_trylock")->function.result, 0), "-");
}

TEST(Prototypes, AreForTheCLibrary) {
    for (const char *soname : {"libc.so.6", "libpthread.so.0", "libm.so.6", "libc.musl-x86_64.so.1", "libc.so"})
        EXPECT_TRUE(is_c_library(soname)) << soname;
    for (const char *soname : {"", "libcap.so.2", "libcrypto.so.3", "libmagic.so.1"})
        EXPECT_FALSE(is_c_library(soname)) << soname;
}

} // namespace
} // namespace ktrace::prototypes
