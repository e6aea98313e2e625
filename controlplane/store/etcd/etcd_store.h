// SPDX-License-Identifier: Apache-2.0
// Store in an etcd cluster (v3 interface, 3.4 or later), for several controllers. A call goes to
// one member at a time, and to the next if that does not answer; watches and leases move likewise.
// A transaction is repeated only if it cannot have been received: otherwise kOutcomeUnknown. Keys
// are under `root`. Compaction affects the whole cluster, which should therefore be dedicated to
// the project. Callbacks run on gRPC's threads.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/store/store.h"

namespace rocegw::store {

struct EtcdOptions {
  std::vector<std::string> endpoints;  // host:port
  std::string root = "/rocegw/";
  // Files with PEM text; all empty: no TLS. Without certificate and key only the server is
  // authenticated.
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;
  // Time limits of a call over all its attempts, and of one attempt.
  std::chrono::milliseconds timeout{8000};
  std::chrono::milliseconds try_timeout{3000};
};

// Reads or creates the store's identity, so one member must answer within the time limit.
StatusOr<std::unique_ptr<Store>> OpenEtcdStore(const EtcdOptions& options);

}  // namespace rocegw::store
