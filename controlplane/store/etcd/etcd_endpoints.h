// SPDX-License-Identifier: Apache-2.0
// The members of an etcd cluster as seen from here: a channel each, and which one is used now.
// Thread safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/store/etcd/etcd_store.h"
#include "etcd.grpc.pb.h"

namespace rocegw::store {

class EtcdEndpoints {
 public:
  struct Member {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<etcdserverpb::KV::Stub> kv;
    std::unique_ptr<etcdserverpb::Watch::Stub> watch;
    std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  };

  static StatusOr<std::unique_ptr<EtcdEndpoints>> Make(const EtcdOptions& options);

  size_t size() const { return members_.size(); }
  // Which one to use now.
  size_t current() const { return current_ % members_.size(); }
  Member& member(size_t index) { return members_[index]; }
  // It did not answer: the next one's turn, unless somebody has said so already.
  void Failed(size_t index);

 private:
  std::vector<Member> members_;
  std::atomic<size_t> current_ = 0;
};

// Refused at once by a member that knows no leader, instead of being kept waiting.
void RequireLeader(grpc::ClientContext& context);

// Whether a call that ended so cannot have been executed.
bool SurelyNotDone(const grpc::Status& status);
// Whether another member, or the same one later, may answer.
bool WorthAnotherTry(const grpc::Status& status);
// `may_be_done`: the call changes something, and nobody knows whether it did.
Status FromGrpc(const grpc::Status& status, bool may_be_done);

}  // namespace rocegw::store
