// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/aims.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rocegw::bench {
namespace {

TEST(Aims, Met_EndsWell) {
  Aims aims;
  ::testing::internal::CaptureStdout();
  aims.AtMost("change", 1, 1, "s");
  aims.AtLeast("64 clients", 4.6, 2, "times one client");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "met     change 1 s (aim: at most 1)\n"
            "met     64 clients 4.6 times one client (aim: at least 2)\n");
  EXPECT_EQ(aims.ExitStatus(), 0);
}

TEST(Aims, OneMissed_IsSaidAndEndsTheProgramWithAnError) {
  Aims aims;
  ::testing::internal::CaptureStdout();
  aims.AtLeast("one client", 0.15, 0.4, "");
  aims.AtMost("memory", 300, 1024, "MiB");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "missed  one client 0.15 (aim: at least 0.4)\n"
            "met     memory 300 MiB (aim: at most 1024)\n");
  EXPECT_EQ(aims.ExitStatus(), 1);
}

TEST(Aims, NoNumber_IsMissed) {
  Aims aims;
  ::testing::internal::CaptureStdout();
  aims.AtMost("start", std::nan(""), 5, "s");
  EXPECT_EQ(::testing::internal::GetCapturedStdout().substr(0, 6), "missed");
  EXPECT_EQ(aims.ExitStatus(), 1);
}

}  // namespace
}  // namespace rocegw::bench
