// The messages between ktrace ctl and ktrace: whole ones, messages in pieces, and what is none.
#include "ctl/wire.h"

#include <random>

#include <gtest/gtest.h>

namespace ktrace::ctl {
namespace {

using Words = std::vector<std::string>;

TEST(ControlWire, AnOrderComesBackAsItWas) {
    for (const Words &words : {Words{}, Words{""}, Words{"ctl", "list"}, Words{"", "a b\nc", "\xff\x01", ""}}) {
        auto read = read_order(write_order(words));
        ASSERT_TRUE(read && *read);
        EXPECT_EQ(**read, words);
    }
}

TEST(ControlWire, AnAnswerComesBackAsItWas) {
    auto read = read_answer(write_answer({2, "out\n", "err"}));
    ASSERT_TRUE(read && *read);
    EXPECT_EQ((*read)->status, 2);
    EXPECT_EQ((*read)->out, "out\n");
    EXPECT_EQ((*read)->err, "err");
}

TEST(ControlWire, APieceIsWaitedFor) {
    std::string order = write_order({"ctl", "-p", "1", "list"});
    std::string answer = write_answer({0, "out", "err"});
    for (std::size_t size = 0; size < order.size(); size++) {
        auto read = read_order(order.substr(0, size));
        ASSERT_TRUE(read) << size;
        EXPECT_FALSE(*read) << size;
    }
    for (std::size_t size = 0; size < answer.size(); size++) {
        auto read = read_answer(answer.substr(0, size));
        ASSERT_TRUE(read) << size;
        EXPECT_FALSE(*read) << size;
    }
}

TEST(ControlWire, WhatWillNeverBeAnOrderIsRefusedAtOnce) {
    using namespace std::string_literals;
    for (const std::string &bytes :
         {"GET / HTTP/1.1\r\n"s, "\0"s, "ktrace-ctl 2 1 1\n"s, "ktrace-ctl 1 \n"s, "ktrace-ctl 1 1\n"s,
          "ktrace-ctl 1 1 2 3\n"s, "ktrace-ctl 1 x 1\n"s, "ktrace-ctl 1 -1 1\n"s,
          "ktrace-ctl 1 1 99999999999999999999\n"s, "ktrace-ctl 1 1 131073\n"s, "ktrace-ctl 1 9 2\n"s,
          "ktrace-ctl 1 1 2\nab"s, "ktrace-ctl 1 1 2\n\0\0"s, "ktrace-ctl 1 " + std::string(100, '1')})
        EXPECT_FALSE(read_order(bytes)) << bytes;
}

TEST(ControlWire, WhatWillNeverBeAnAnswerIsRefusedAtOnce) {
    for (const char *bytes : {"220 mail ESMTP\r\n", "ktrace-ctl 1 256 1 1\n", "ktrace-ctl 1 0 1\n",
                              "ktrace-ctl 1 0 999999999999 0\n", "ktrace-ctl 1 0 0 999999999999\n"})
        EXPECT_FALSE(read_answer(bytes)) << bytes;
}

TEST(ControlWire, NoBytesAreMisunderstood) {
    std::mt19937 random(1);
    std::string order = write_order({"ctl", "-p", "123", "add", "-k", "f"});
    for (int i = 0; i < 20000; i++) {
        std::string bytes = order;
        for (int n = 0; n < 3; n++) bytes[random() % bytes.size()] = static_cast<char>(random());
        auto read = read_order(bytes);
        if (!read || !*read) continue;
        EXPECT_LE((*read)->size(), bytes.size());
    }
}

} // namespace
} // namespace ktrace::ctl
