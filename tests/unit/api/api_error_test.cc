// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/calls/api_error.h"

#include <gtest/gtest.h>

#include "controlplane/store/store.h"
#include "google/rpc/error_details.pb.h"

namespace rocegw::api {
namespace {

TEST(ApiError, Details_AreThoseThatClientsRead) {
  const grpc::Status status =
      ToStatus(InvalidArgument({{"pool.spec.slots", "must be at most 1024, is 5000"}, {"x", "y"}}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "pool.spec.slots must be at most 1024, is 5000 (and 1 more)");
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), 3);
  EXPECT_EQ(details.message(), status.error_message());
  ASSERT_EQ(details.details_size(), 2);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "INVALID_FIELDS");
  EXPECT_EQ(info.domain(), "rocegw.io");
  google::rpc::BadRequest request;
  ASSERT_TRUE(details.details(1).UnpackTo(&request));
  ASSERT_EQ(request.field_violations_size(), 2);
  EXPECT_EQ(request.field_violations(0).field(), "pool.spec.slots");
}

TEST(ApiError, Store_WhatMayBeRepeatedIsToldFromWhatMayNot) {
  EXPECT_EQ(FromStore({store::kUnavailable, "x"}).code, grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(FromStore({store::kOutcomeUnknown, "x"}).reason, "OUTCOME_UNKNOWN");
  EXPECT_EQ(FromStore({store::kFull, "x"}).code, grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(FromStore({store::kCompacted, "x"}).code, grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(FromStore({store::kDamaged, "x"}).code, grpc::StatusCode::INTERNAL);
}

TEST(ApiError, EtagMismatch_SaysWhatItIsNow) {
  const ApiError error = EtagMismatch("tenants/a", "r1", "r2");
  EXPECT_EQ(error.code, grpc::StatusCode::ABORTED);
  EXPECT_EQ(error.metadata.at("etag"), "r2");
}

}  // namespace
}  // namespace rocegw::api
