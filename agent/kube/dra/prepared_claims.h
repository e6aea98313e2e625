// SPDX-License-Identifier: Apache-2.0
// Prepared claims of this node on disk: a restarted agent answers kubelet like the previous one,
// and knows the owners of slots. Blocking on small files; one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/kube/pods/assignments.h"
#include "agent/kube/slot_allocator.h"
#include "gateway/base/status.h"

namespace rocegw::agent {

struct PreparedDevice {
  std::string request;
  std::string device;
  std::string resource;  // "rocegw.io/T.P"
  std::string slot;      // id
  SlotAmounts amounts;
  bool operator==(const PreparedDevice&) const = default;
};

struct PreparedClaim {
  std::string claim;  // name, in the pod's namespace; empty: unknown (checkpoint of an old agent)
  PodName pod;
  std::string pod_uid;
  std::vector<PreparedDevice> devices;
  bool operator==(const PreparedClaim&) const = default;
};

using PreparedClaims = std::map<std::string, PreparedClaim>;  // by uid of the claim

// Returns ENOENT if there is no file; EBADMSG, with a remedy in the text, if it is damaged.
StatusOr<PreparedClaims> LoadPreparedClaims(const std::string& file);
Status SavePreparedClaims(const std::string& file, const PreparedClaims& claims);

}  // namespace rocegw::agent
