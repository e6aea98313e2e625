// SPDX-License-Identifier: Apache-2.0
// The store in an etcd cluster (v3 interface, 3.4 or later), for several controllers. A call goes
// to one member at a time, and to the next one when that does not answer; watches and leases move
// on likewise. A transaction is sent again only while it cannot have been received: otherwise
// kOutcomeUnknown. Keys lie under `root`; compaction concerns the whole cluster, which therefore
// should be the project's own. Callbacks run on gRPC's threads.
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
  // Files with PEM text; all empty: without TLS. Without certificate and key only the server is
  // checked.
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;
  // What a call may take over all its tries, and one try of it.
  std::chrono::milliseconds timeout{8000};
  std::chrono::milliseconds try_timeout{3000};
};

// Reads or makes the store's identity, so one member must answer within the time.
StatusOr<std::unique_ptr<Store>> OpenEtcdStore(const EtcdOptions& options);

}  // namespace rocegw::store
