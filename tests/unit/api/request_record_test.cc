// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/calls/request_record.h"

#include <gtest/gtest.h>

namespace rocegw::api {
namespace {

Call CallWith(const std::string& request_id) {
  return {.principal = "ana",
          .peer = {},
          .method = "/rocegw.admin.v1.Pools/UpdatePool",
          .request_id = request_id,
          .request_digest = "digest",
          .request_json = {},
          .etag_before = {}};
}

TEST(RequestRecord, TheTransactionFailsOnceTheRequestIsRecorded) {
  const Call call = CallWith("a");
  store::Transaction transaction;
  AddRequestRecord(call, transaction);
  ASSERT_EQ(transaction.compares.size(), 1U);
  ASSERT_EQ(transaction.then.size(), 1U);
  EXPECT_TRUE(transaction.compares[0].Holds(nullptr));
  store::Entry entry;
  entry.key = RequestKey(call);
  entry.value = transaction.then[0].value;
  entry.create_revision = entry.mod_revision = 1;
  EXPECT_FALSE(transaction.compares[0].Holds(&entry));

  const auto record = ReadRequestRecord(entry);
  ASSERT_TRUE(record.has_value());
  EXPECT_FALSE(RequestIdReused(call, *record).has_value());
  Call other = call;
  other.request_digest = "another";
  EXPECT_TRUE(RequestIdReused(other, *record).has_value());
}

TEST(RequestRecord, ACallWithoutARequestIdLeavesNone) {
  store::Transaction transaction;
  AddRequestRecord(CallWith(""), transaction);
  EXPECT_TRUE(transaction.compares.empty());
  EXPECT_TRUE(transaction.then.empty());
}

TEST(RequestRecord, NoEntryAndADamagedOneAreNoRecord) {
  EXPECT_FALSE(ReadRequestRecord(std::nullopt).has_value());
  store::Entry entry;
  entry.value = "\xff\xff";
  EXPECT_FALSE(ReadRequestRecord(entry).has_value());
}

TEST(RequestRecord, OnlyCallsThatMayNotHaveArrivedAreRepeated) {
  for (const int code : {1, 4, 8, 10, 14}) EXPECT_TRUE(MayBeRepeated(code)) << code;
  for (const int code : {0, 2, 3, 5, 6, 7, 9, 11, 12, 13, 15, 16})
    EXPECT_FALSE(MayBeRepeated(code)) << code;
}

}  // namespace
}  // namespace rocegw::api
