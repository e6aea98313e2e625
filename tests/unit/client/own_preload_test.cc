// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/process/own_preload.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace rocegw::client {
namespace {

constexpr char kOurs[] = "/opt/rocegw/lib/librocegw-verbs.so";

class OwnPreload : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("ROCEGW_SLOT", "30c41873-0", 1); }
  void TearDown() override {
    ::unsetenv("ROCEGW_SLOT");
    ::unsetenv("LD_PRELOAD");
  }
  static std::string Found(const std::string& preload, size_t room = 128) {
    ::setenv("LD_PRELOAD", preload.c_str(), 1);
    std::string text(room + 1, '!');
    FindOwnPreload(text.data(), room);
    EXPECT_EQ(text[room], '!');
    return text.c_str();
  }
};

TEST_F(OwnPreload, WhatIsNamedBesideOurs) {
  const std::string ours = kOurs;
  EXPECT_EQ(Found(""), "");
  EXPECT_EQ(Found(ours), "");
  EXPECT_EQ(Found("librocegw-verbs.so"), "");
  EXPECT_EQ(Found("/usr/lib/librocegw-verbs.so:" + ours), "");
  EXPECT_EQ(Found("/lib/a.so"), "/lib/a.so") << "it has come by another way";
  EXPECT_EQ(Found("/lib/a.so:" + ours), "/lib/a.so");
  EXPECT_EQ(Found(ours + ":/lib/a.so"), "/lib/a.so");
  EXPECT_EQ(Found(" /lib/a.so " + ours + "::b.so "), "/lib/a.so:b.so") << "spaces separate, too";
  EXPECT_EQ(Found("/lib/notlibrocegw-verbs.so"), "/lib/notlibrocegw-verbs.so");
}

TEST_F(OwnPreload, AsMuchAsThereIsRoomFor) {
  EXPECT_EQ(Found("abc:def", 8), "abc:def");
  EXPECT_EQ(Found("abc:def", 7), "abc");
  EXPECT_EQ(Found("abcdef", 6), "");
  EXPECT_EQ(Found("abcdef", 1), "");
}

TEST_F(OwnPreload, OutsideOfContainersNobodyAsks) {
  ::unsetenv("ROCEGW_SLOT");
  EXPECT_EQ(Found("/lib/a.so"), "");
  ::setenv("ROCEGW_SLOT", "x", 1);
  ::unsetenv("LD_PRELOAD");
  char text[4] = "abc";
  FindOwnPreload(text, sizeof text);
  EXPECT_STREQ(text, "");
}

}  // namespace
}  // namespace rocegw::client
