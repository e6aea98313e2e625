// SPDX-License-Identifier: Apache-2.0
// Steps of a program's commands on rdma_cm ids beside the ids of another one.
#include <gtest/gtest.h>

#include "tests/support/steps.h"
#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm {
namespace {

using testing::AnyV4;
using testing::Host;
using testing::kOtherProgram;
using testing::V4;

// Returns the steps of what a program may do at any rate, while another one has so many ids.
uint64_t StepsBeside(uint32_t ids) {
  Host host(V4(1), 1);
  for (uint32_t i = 0; i < ids; ++i) {
    const CmHandle id = host.Create();
    EXPECT_EQ(host.Do(id, Bind{{V4(1), static_cast<uint16_t>(1000 + i)}}), 0);
  }
  const auto round = [&] {
    for (uint32_t i = 0; i < 100; ++i) {
      host.engine().DropOwner(SessionId{1000 + i}, host.now, host.actions);
      const CmHandle id = host.Create(PortSpace::kTcp, QpType::kRc, kOtherProgram);
      EXPECT_EQ(host.Do(id, Bind{AnyV4(999)}, kOtherProgram), 0);
      EXPECT_EQ(host.Do(id, Listen{4}, kOtherProgram), 0);
      host.engine().DropOwner(kOtherProgram, host.now, host.actions);
    }
  };
  round();
  return rocegw::testing::StepsOf(round);
}

TEST(IdSteps, IdsOfOthers_CostAProgramLittle) {
  const uint64_t few = StepsBeside(10);
  EXPECT_GE(few, 1000u) << "the code is not counted";
  // Trees of eleven more levels.
  EXPECT_LT(StepsBeside(16000), 4 * few);
}

}  // namespace
}  // namespace rocegw::cm
