// SPDX-License-Identifier: Apache-2.0
// Session that files or swap are kept in, as the command line describes it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/far/files/space.h"
#include "gateway/far/session/session.h"

namespace rocegw::far {

struct SessionArguments {
  std::vector<std::string> donors;  // "HOST", "HOST:PORT", "[ADDRESS]:PORT"
  std::string donors_from;          // "fleet": the agent of this host names the donors
  std::string donors_dir = "/run/rocegw-donors";
  uint64_t size = 0;
  uint32_t replicas = 1;
  std::string tenant = "default";
  uint64_t slab_bytes = 64 << 20;
  uint32_t timeout_ms = 5000;
  std::string disk_copy;  // file; empty: none
  bool keep = false;      // the space outlives the session: in the disk copy, or else at the donors
  std::string metrics;    // "ADDRESS:PORT"; empty: none
};

constexpr uint64_t kMostInFlight = 32 << 20;  // bytes of requests that wait for donors

// Space at the donors that outlives its session.
struct KeptSpace {
  std::function<Status(const std::string& placement)> save;  // nullptr: the space does not
  std::optional<Placement> placement;                        // the earlier session's
  std::vector<CopyFile::Range> data;
};

// Opens the session; fills in the names of donors that the fleet chooses. EINVAL: no donor is
// named. ECANCELED: `signals` (process::BlockSignals) had one that stops the program.
StatusOr<std::unique_ptr<Session>> OpenSession(SessionArguments& arguments, int signals,
                                               KeptSpace kept = {});

// The session as a space; the session outlives it.
std::unique_ptr<Space> MakeSpace(Session& session);

}  // namespace rocegw::far
