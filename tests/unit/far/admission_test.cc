// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/request/admission.h"

#include <gtest/gtest.h>

namespace rocegw::far {
namespace {

TEST(Admission, AdmitsUpToTheWindow) {
  Admission admission(100);
  EXPECT_TRUE(admission.Admit(60));
  EXPECT_TRUE(admission.Admit(40));
  EXPECT_FALSE(admission.Admit(1));
  EXPECT_EQ(admission.in_flight(), 100u);
  EXPECT_EQ(admission.refusals(), 1u);
  admission.Release(60);
  EXPECT_TRUE(admission.Admit(60));
}

TEST(Admission, AdmitsARequestLargerThanTheWindowAlone) {
  Admission admission(100);
  EXPECT_TRUE(admission.Admit(500));
  EXPECT_FALSE(admission.Admit(1));
  admission.Release(500);
  EXPECT_TRUE(admission.Admit(1));
  EXPECT_FALSE(admission.Admit(500));
}

TEST(Admission, WithoutWindowAdmitsEverything) {
  Admission admission(0);
  EXPECT_TRUE(admission.Admit(1));
  EXPECT_TRUE(admission.Admit(uint64_t{1} << 40));
  EXPECT_EQ(admission.peak(), (uint64_t{1} << 40) + 1);
}

TEST(Admission, HookReplacesTheWindow) {
  Admission admission(100);
  uint64_t window = 10;
  admission.SetHook([](void* argument, uint64_t) { return *static_cast<uint64_t*>(argument); },
                    &window);
  EXPECT_TRUE(admission.Admit(10));
  EXPECT_FALSE(admission.Admit(1));
  window = 11;
  EXPECT_TRUE(admission.Admit(1));
  // A hook may shrink the window below what is in flight.
  window = 0;
  EXPECT_FALSE(admission.Admit(1));
  admission.Release(11);
  EXPECT_TRUE(admission.Admit(1));
}

}  // namespace
}  // namespace rocegw::far
