// SPDX-License-Identifier: Apache-2.0
// Conversion between the store's values and etcd's messages. Below the root, keys of the store are
// under "k/", its identity is "uuid". Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "controlplane/store/transaction.h"
#include "etcd.pb.h"

namespace rocegw::store {

class EtcdMessages {
 public:
  explicit EtcdMessages(const std::string& root) : prefix_(root + "k/"), uuid_(root + "uuid") {}

  const std::string& uuid_key() const { return uuid_; }

  // Sets the range in any message with fields key and range_end.
  template <typename Message>
  void SetRange(const KeyRange& range, Message* message) const {
    message->set_key(prefix_ + range.begin);
    message->set_range_end(range.end.empty() ? KeyRange::Prefix(prefix_).end : prefix_ + range.end);
  }
  etcdserverpb::TxnRequest From(const Transaction& transaction) const;
  etcdserverpb::RangeRequest From(const RangeRequest& request) const;
  Entry To(const etcdserverpb::KeyValue& kv) const;
  Change To(const etcdserverpb::Event& event) const;
  TransactionResult To(const etcdserverpb::TxnResponse& response) const;

 private:
  void Branch(const std::vector<Operation>& operations,
              google::protobuf::RepeatedPtrField<etcdserverpb::RequestOp>* out) const;

  const std::string prefix_;
  const std::string uuid_;
};

}  // namespace rocegw::store
