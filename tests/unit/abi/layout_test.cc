// SPDX-License-Identifier: Apache-2.0
// The contract between library and daemon is frozen within a major version: sizes, offsets,
// transmitted values, and slot sizes.
#include <gtest/gtest.h>

#include <cstddef>

#include "gateway/abi/rocegw_abi.h"

extern "C" uint32_t SqStrideInC(uint32_t max_sge);
extern "C" uint32_t RqStrideInC(uint32_t max_sge);

namespace rocegw {
namespace {

struct Golden {
  const char* what;
  size_t is;
  size_t should_be;
};
// Tables and loops: hundreds of expectations in one function take minutes to compile.
constexpr Golden kSizes[] = {
#define SIZE(type, size) {#type, sizeof(type), size},
#define FIELD(type, field, offset)
#include "tests/unit/abi/layout.def"
#undef FIELD
#undef SIZE
};
constexpr Golden kOffsets[] = {
#define SIZE(type, size)
#define FIELD(type, field, offset) {#type "." #field, offsetof(type, field), offset},
#include "tests/unit/abi/layout.def"
#undef FIELD
#undef SIZE
};

TEST(AbiLayout, EverySizeAndOffset_IsTheGoldenOne) {
  for (const Golden& golden : kSizes) EXPECT_EQ(golden.is, golden.should_be) << golden.what;
  for (const Golden& golden : kOffsets) EXPECT_EQ(golden.is, golden.should_be) << golden.what;
}

TEST(AbiLayout, WhatOneSideWrites_SharesNoLineWithTheOthers) {
  EXPECT_EQ(sizeof(rocegw_cqe), ROCEGW_CACHE_LINE);
  EXPECT_EQ(sizeof(rocegw_qp_status), ROCEGW_CACHE_LINE);
  EXPECT_EQ(sizeof(rocegw_worker_line), ROCEGW_CACHE_LINE);
  EXPECT_EQ(sizeof(rocegw_cq_control{}.worker[0]), ROCEGW_CACHE_LINE);
  EXPECT_EQ(sizeof(rocegw_qp_control) % ROCEGW_CACHE_LINE, 0u);
  EXPECT_EQ(sizeof(rocegw_doorbell_page{}.leaf) * 8, ROCEGW_DOORBELL_BITS);
}

TEST(AbiMessages, AllFitOneRecord) {
  for (const Golden& golden : kSizes) EXPECT_LE(golden.is, ROCEGW_MESSAGE_MAX) << golden.what;
}

// The first words of a greeting, which a peer of another major version also reads.
TEST(AbiMessages, Greeting_NeverMoves) {
  EXPECT_EQ(ROCEGW_ABI_MAGIC, 0x57474352u);
  EXPECT_EQ(ROCEGW_ABI_MAJOR, 1u);
  EXPECT_EQ(ROCEGW_MSG_HELLO, 1);
  EXPECT_EQ(offsetof(rocegw_request, type), 0u);
  EXPECT_EQ(offsetof(rocegw_hello, magic), 16u);
  EXPECT_EQ(offsetof(rocegw_hello, major), 20u);
  EXPECT_EQ(offsetof(rocegw_reply, error), 16u);
}

TEST(AbiStrides, SendSlots_AreWholeLines) {
  constexpr uint32_t kExpected[][2] = {{0, 64},  {1, 64},  {2, 128},  {5, 128},
                                       {6, 192}, {9, 192}, {10, 256}, {30, 576}};
  for (const auto& [max_sge, stride] : kExpected) {
    EXPECT_EQ(rocegw_sq_stride(max_sge), stride) << max_sge;
    EXPECT_EQ(SqStrideInC(max_sge), stride) << max_sge;
  }
  for (uint32_t n = 0; n <= 64; ++n) {
    EXPECT_EQ(rocegw_sq_stride(n) % ROCEGW_CACHE_LINE, 0u);
    EXPECT_GE(rocegw_sq_stride(n), sizeof(rocegw_send_wqe) + n * sizeof(rocegw_sge));
  }
}

TEST(AbiStrides, ReceiveSlots_ArePowersOfTwo) {
  constexpr uint32_t kExpected[][2] = {{0, 32},  {1, 32},  {2, 64},  {3, 64},
                                       {4, 128}, {7, 128}, {8, 256}, {30, 512}};
  for (const auto& [max_sge, stride] : kExpected) {
    EXPECT_EQ(rocegw_rq_stride(max_sge), stride) << max_sge;
    EXPECT_EQ(RqStrideInC(max_sge), stride) << max_sge;
  }
}

}  // namespace
}  // namespace rocegw
