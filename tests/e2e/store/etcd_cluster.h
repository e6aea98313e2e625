// SPDX-License-Identifier: Apache-2.0
// Real etcd processes on loopback, one cluster, in a folder of their own; gone with this object, or
// with the test's process. Elections take half a second.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "controlplane/store/etcd/etcd_store.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::testing {

class EtcdCluster {
 public:
  // Returns when every member answers.
  explicit EtcdCluster(size_t members);
  ~EtcdCluster();
  EtcdCluster(const EtcdCluster&) = delete;
  EtcdCluster& operator=(const EtcdCluster&) = delete;

  store::EtcdOptions Options(const std::string& root) const;
  // Which member leads; waits until one does.
  size_t Leader() const;
  // SIGKILL ends it, until Restart; SIGSTOP has stopped it when this returns; SIGCONT.
  void Signal(size_t member, int signal);
  // One that was killed, on the data that it left. Does not wait until it answers.
  void Restart(size_t member);
  size_t size() const { return members_.size(); }

 private:
  struct Member {
    pid_t pid = -1;
    uint16_t client_port = 0;
    uint16_t peer_port = 0;
  };

  void Start(size_t index);

  ScratchDirectory directory_;
  std::vector<Member> members_;
  std::string peers_;  // "m0=URL,m1=URL"
};

}  // namespace rocegw::testing
