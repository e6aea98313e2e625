// SPDX-License-Identifier: Apache-2.0
// Members of an etcd cluster: a channel per member, and the currently used one. Thread safe.
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
  // Returns the index of the currently used member.
  size_t current() const { return current_ % members_.size(); }
  Member& member(size_t index) { return members_[index]; }
  // Moves on to the next member because this one did not answer, unless another call has done so.
  void Failed(size_t index);

 private:
  std::vector<Member> members_;
  std::atomic<size_t> current_ = 0;
};

// Makes a member without a leader refuse at once instead of delaying the call.
void RequireLeader(grpc::ClientContext& context);

// Returns true if the call that ended with this status cannot have been executed.
bool SurelyNotDone(const grpc::Status& status);
// Returns true if another member, or the same one later, may answer.
bool WorthAnotherTry(const grpc::Status& status);
// `may_be_done`: the call changes data and may have been executed.
Status FromGrpc(const grpc::Status& status, bool may_be_done);

}  // namespace rocegw::store
