// SPDX-License-Identifier: Apache-2.0
// Claims that are prepared on this node, on disk: an agent that starts anew answers kubelet as the
// one before did, and knows whose slots are. Blocking on small files; one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/kube/pods/assignments.h"
#include "gateway/base/status.h"

namespace rocegw::agent {

struct PreparedDevice {
  std::string request;
  std::string device;
  std::string resource;  // "rocegw.io/T.P"
  std::string slot;      // id
  bool operator==(const PreparedDevice&) const = default;
};

struct PreparedClaim {
  PodName pod;
  std::string pod_uid;
  std::vector<PreparedDevice> devices;
  bool operator==(const PreparedClaim&) const = default;
};

using PreparedClaims = std::map<std::string, PreparedClaim>;  // by uid of the claim

// ENOENT: there is no file. EBADMSG: it is damaged, and the text says what to do.
StatusOr<PreparedClaims> LoadPreparedClaims(const std::string& file);
Status SavePreparedClaims(const std::string& file, const PreparedClaims& claims);

}  // namespace rocegw::agent
